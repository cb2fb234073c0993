package main

import (
	"os"
	"testing"
)

// TestMain lets the test binary act as the child process.
func TestMain(m *testing.M) {
	if isChild() {
		return
	}
	os.Exit(m.Run())
}
