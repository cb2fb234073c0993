//go:build !unix

package server

// mostFiles is for systems that have no such limit.
func mostFiles() (most uint64, known bool) { return 0, false }
