// Package outside stands in for the world that the examples act on: the ticket office, the mail server, the bank. Each is a
// [Log], a file to which a line is added for everything that happens, so that anybody can count it afterwards.
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

// Log is what one place of the outside world has done. Its methods may be called at once from any goroutine.
type Log struct {
	path string
	mu   sync.Mutex
}

// Entry is one thing that was done.
type Entry struct {
	// Key is the idempotency key of the call.
	Key  string          `json:"key"`
	What json.RawMessage `json:"what"`
	// Again marks a call whose key was known: it did nothing.
	Repeated bool `json:"again,omitempty"`
}

// Open returns the book of that name in a directory. The file comes with its first line.
func Open(dir, name string) *Log { return &Log{path: filepath.Join(dir, name+".jsonl")} }

// Do does something, however often it is called with one key: so is a place that knows nothing of keys, as a mail server.
func (b *Log) Do(key string, what any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(key, what, false)
}

// DoOnce does something once per key: so is a place that keeps the keys of its callers, as a good bank. It returns the number
// of what was done, as a ticket or a receipt carries one: the same for the same key.
func (b *Log) DoOnce(key string, what any) (number int, err error) {
	if key == "" {
		return 0, errors.New("outside: a call without a key")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, err := b.read()
	if err != nil {
		return 0, err
	}
	number = slices.IndexFunc(lines, func(line Entry) bool { return line.Key == key })
	if number >= 0 {
		return number + 1, b.add(key, what, true)
	}
	return len(lines) + 1, b.add(key, what, false)
}

// Lines returns everything, oldest first.
func (b *Log) Entries() ([]Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read()
}

// Count returns how much was done, and how many calls were repeated and did nothing.
func (b *Log) Count() (done, again int, err error) {
	lines, err := b.Entries()
	for _, line := range lines {
		if line.Repeated {
			again++
		} else {
			done++
		}
	}
	return done, again, err
}

// add is back when the line is on the disk: what has happened cannot be forgotten by a crash.
func (b *Log) add(key string, what any, again bool) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	line, err := json.Marshal(Entry{Key: key, What: data, Repeated: again})
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
			return nil, fmt.Errorf("outside: %s, line %d: %w", filepath.Base(b.path), len(lines)+1, err)
		}
		lines = append(lines, line)
	}
	return lines, scanner.Err()
}
