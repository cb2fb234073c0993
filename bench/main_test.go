package main

import (
	"os"
	"testing"
)

// TestMain lets the test binary be the child that it starts.
func TestMain(m *testing.M) {
	if isChild() {
		return
	}
	os.Exit(m.Run())
}
