// Package arch holds the house plan as a test and nothing else.
//
// rules_test.go says, with a reason per line, which package may import which others, which third-party modules it may
// use, and which packages may import testing. The test reads the imports of every package of this module and names each
// one that the tables do not allow. A change to the plan is a change to a table, and the reason stands next to it.
package arch
