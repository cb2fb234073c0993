package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine describes the machine and the versions.
type machine struct {
	Date  time.Time `json:"date"`
	Go    string    `json:"go"`
	OS    string    `json:"os"`
	CPU   string    `json:"cpu"`
	Cores int       `json:"cores"`
	Load  string    `json:"load"`
	Eino  string    `json:"eino"`
	Sonic string    `json:"sonic"`
	// Other has the versions of databases and of LangGraph that were measured.
	Other []string `json:"other,omitempty"`
}

func describe(now time.Time) machine {
	return machine{
		Date: now, Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPU: cpuModel(), Cores: runtime.NumCPU(),
		Load: loadAverage(), Eino: moduleVersion("github.com/cloudwego/eino"), Sonic: moduleVersion("github.com/bytedance/sonic"),
	}
}

func (m machine) String() string {
	return fmt.Sprintf("%s · %s %s · %s, %d cores · load at the start %s · %s",
		m.Date.Format("2006-01-02 15:04 MST"), m.Go, m.OS, m.CPU, m.Cores, m.Load,
		strings.Join(append([]string{"Eino " + m.Eino + " (sonic " + m.Sonic + ")"}, m.Other...), " · "))
}

const unknown = "unknown"

func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(data)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return unknown
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return unknown
}
