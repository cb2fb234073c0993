package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// given is JSON on a command line: itself, or where it is. A command line is short, and others on the machine can read it; a state that was edited is neither
// short nor for them. No JSON begins with an @ or is a -, so that nothing has to be quoted.
type given string

// mostGiven is more than a server takes, unless somebody has told it to.
const mostGiven = 64 << 20

// read returns the JSON; what is its name in the errors.
func (g given) read(what string) (json.RawMessage, error) {
	text, from := []byte(g), ""
	switch name, isFile := strings.CutPrefix(string(g), "@"); {
	case g == "-":
		var err error
		if text, err = readGiven(os.Stdin); err != nil {
			return nil, usage("%s: standard input: %w", what, err)
		}
		from = " on standard input"
	case isFile:
		file, err := os.Open(name)
		if err != nil {
			return nil, usage("%s: %w", what, err)
		}
		defer file.Close()
		if text, err = readGiven(file); err != nil {
			return nil, usage("%s: %s: %w", what, name, err)
		}
		from = " in " + name
	}
	if !json.Valid(text) {
		return nil, usage("%s%s is no JSON", what, from)
	}
	return text, nil
}

func readGiven(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostGiven+1))
	if err == nil && len(text) > mostGiven {
		err = fmt.Errorf("more than %d MiB", mostGiven>>20)
	}
	return text, err
}
