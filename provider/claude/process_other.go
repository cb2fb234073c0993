//go:build !linux

package claude

import "os/exec"

// isolate does nothing on this platform: if this process is killed, the CLI finds its hook gone and
// denies every further call.
func isolate(*exec.Cmd) {}

// killGroup does nothing on this platform.
func killGroup(*exec.Cmd) {}
