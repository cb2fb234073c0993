//go:build unix

package admission

import "syscall"

// maxOpenFiles returns how many files the process may open.
func maxOpenFiles() (maximum uint64, known bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}
