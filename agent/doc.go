// Package agent builds agents out of models and tools.
package agent
