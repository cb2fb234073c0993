package main

import (
	"errors"
	"fmt"
	"slices"
)

// mutant is the program with one safeguard switched off, and the tests that must fail then.
type mutant struct {
	// invariant is the invariant that the safeguard protects, such as "I4".
	invariant string
	// id is the marker of the safeguard in the source, without "//mutate:". Several mutants may use
	// one marker. A mutant of a migration has an id, but no marker.
	id string
	// without says what goes wrong without the safeguard.
	without string
	// op switches the safeguard off.
	op operator
	// in lists package patterns, run is the -run pattern of the tests that must fail.
	in, run string
}

// name is the text that -run matches.
func (m mutant) name() string { return m.invariant + " " + m.id + ": " + m.without }

// apply returns the text of the files that the mutant changes, by path.
func (m mutant) apply(t *tree) (map[string]string, error) {
	changes, err := m.op(t, m.id)
	if err != nil {
		return nil, err
	}
	byFile := make(map[string][]change)
	for _, c := range changes {
		byFile[c.file] = append(byFile[c.file], c)
	}
	mutated := make(map[string]string)
	for path, changes := range byFile {
		text, err := t.read(path)
		if err != nil {
			return nil, err
		}
		if mutated[path], err = edit(text, changes); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if mutated[path] == text {
			return nil, fmt.Errorf("%s does not change", path)
		}
	}
	if len(mutated) == 0 {
		return nil, errors.New("nothing changes")
	}
	return mutated, nil
}

// edit makes the changes, which must not overlap, from the last one to the first.
func edit(text string, changes []change) (string, error) {
	slices.SortStableFunc(changes, func(a, b change) int { return a.begin - b.begin })
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if i+1 < len(changes) && c.end > changes[i+1].begin {
			return "", errors.New("two changes overlap")
		}
		text = text[:c.begin] + c.text + text[c.end:]
	}
	return text, nil
}
