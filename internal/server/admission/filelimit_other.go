//go:build !unix

package admission

// maxOpenFiles is for systems without a file limit.
func maxOpenFiles() (maximum uint64, known bool) { return 0, false }
