package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is the program with one safeguard switched off, and the tests that must notice.
type mutant struct {
	// invariant is the promise that the safeguard is for, "I4"; off says what happens without it.
	invariant, off string
	// file is the one to change, below the root of the module, and edits how.
	file  string
	edits []edit
	// in lists packages, run is the pattern of those of their tests that prove the safeguard.
	in, run string
}

// edit replaces a text, which must be there exactly once.
type edit struct{ old, new string }

// swap makes edits of pairs of old and new text.
func swap(pairs ...string) []edit {
	var edits []edit
	for i := 0; i < len(pairs); i += 2 {
		edits = append(edits, edit{pairs[i], pairs[i+1]})
	}
	return edits
}

// name is what -run picks by.
func (m mutant) name() string { return m.invariant + " " + m.file + ": " + m.off }

// apply returns the text of the file as the mutant has it.
func (m mutant) apply(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	text := string(data)
	for _, e := range m.edits {
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("%s has %d times, not once, the text %q", m.file, n, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	if text == string(data) {
		return "", fmt.Errorf("%s is not changed at all", m.file)
	}
	return text, nil
}
