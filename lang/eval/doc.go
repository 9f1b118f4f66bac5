// Package eval gives everything in a configuration its value: variables, locals,
// arguments and outputs of modules, data, and the instances of what is repeated, in the
// order in which they need each other.
//
// It makes no specs; package decode does, and evaluates the attributes of blocks by
// [Get]. It reads data through a [Reader] alone.
//
// Start with [Session.Evaluate] and node.go for the order, [Evaluator.Eval] for one
// expression, and [Scope] for expressions that stand in no file. Beside the Evaluator
// of a module instance stand what it asks: variable (what a variable may have),
// dataSource, repetition (count and for_each), job (the value of one), dynamicBlocks,
// [Constants], [Providers] and the [Reporter] of what is wrong.
package eval
