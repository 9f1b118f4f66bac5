// Package testruns runs the tests of a configuration, fray test: each file on a stack of
// its own, which is taken down again, with a report in text or JSON. It knows no
// language of its own: schema parses tests and checks their assertions. Start with Run.
package testruns
