// Package arch tests the import rules of the module.
//
// rules_test.go lists, with a reason per line, which package may import which others, which
// third-party modules it may use, and which packages may import testing. The test reads the imports
// of every package and reports each one that the tables do not allow. To change a rule, change its
// table row and the reason.
//
// Other tests check the files of the repository: their length, their prose, the number of exported
// names of public packages, and that each test that docs/requirements.md names exists.
package arch
