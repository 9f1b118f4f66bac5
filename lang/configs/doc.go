// Package configs is what can be known of a configuration without values: blocks that
// were checked against the table of the language, the declarations of each module,
// references, and the order in which values need each other.
//
// It evaluates nothing; expressions and declarations have room for what package eval
// finds of them.
//
// Start with [Modules] for the tree, [Declarations] for what a module declares,
// [Expression] and [Reference] for what refers to what, and [Node] for the order.
package configs
