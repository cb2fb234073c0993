// Package target simulates the external systems of the assistant, such as the mail server and the
// bank. Each is a [Log], a file with one line per action, so that actions can be counted.
package target

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Log contains the actions of one external system. It is safe for concurrent use.
type Log struct {
	path string
	mu   sync.Mutex
}

// Entry is one action.
type Entry struct {
	// Key is the idempotency key of the call.
	Key  string          `json:"key"`
	What json.RawMessage `json:"what"`
	// Repeated marks a call with a known key: it did nothing.
	Repeated bool `json:"again,omitempty"`
}

// Open returns the log with that name in a directory. The file is created with its first entry.
func Open(dir, name string) *Log { return &Log{path: filepath.Join(dir, name+".jsonl")} }

// Do performs an action on every call, also with the same key, like a system without idempotency
// keys such as a mail server.
func (b *Log) Do(key string, action any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(key, action, false)
}

// DoOnce performs an action once per key, like a system that stores idempotency keys. It returns
// the number of the action, for example a ticket number: the same for the same key.
func (b *Log) DoOnce(key string, action any) (number int, err error) {
	if key == "" {
		return 0, errors.New("target: call without a key")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, err := b.read()
	if err != nil {
		return 0, err
	}
	number = slices.IndexFunc(lines, func(line Entry) bool { return line.Key == key })
	if number >= 0 {
		return number + 1, b.add(key, action, true)
	}
	return len(lines) + 1, b.add(key, action, false)
}

// Entries returns all entries, oldest first.
func (b *Log) Entries() ([]Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read()
}

// Count returns the number of actions, and the number of repeated calls that did nothing.
func (b *Log) Count() (done, repeated int, err error) {
	lines, err := b.Entries()
	for _, line := range lines {
		if line.Repeated {
			repeated++
		} else {
			done++
		}
	}
	return done, repeated, err
}

// add returns when the entry is on disk, so that a crash cannot lose it.
func (b *Log) add(key string, action any, repeated bool) error {
	data, err := json.Marshal(action)
	if err != nil {
		return err
	}
	line, err := json.Marshal(Entry{Key: key, What: data, Repeated: repeated})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

func (b *Log) read() ([]Entry, error) {
	data, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var lines []Entry
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, len(data)+1)
	for scanner.Scan() {
		var line Entry
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("target: %s, line %d: %w", filepath.Base(b.path), len(lines)+1, err)
		}
		lines = append(lines, line)
	}
	return lines, scanner.Err()
}
