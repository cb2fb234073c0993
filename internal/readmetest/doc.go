// Package readmetest follows README.md like a new user: its tests take a clean copy of the tree, an
// empty home directory and an empty environment, and run the commands that README.md and the
// program propose. They fail if the two disagree.
package readmetest
