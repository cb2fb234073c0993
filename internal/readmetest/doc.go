// Package newcomer is somebody who has never seen Fermata: its tests take a clean copy of the tree, an empty home and nothing in the
// environment, and do literally what README.md and the program itself tell them to. They fail when the two disagree.
package readmetest
