package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// jsonArg is JSON on a command line: itself, or where it is. A command line is short, and others on the machine can read it; a state that was edited is neither
// short nor for them. No JSON begins with an @ or is a -, so that nothing has to be quoted.
type jsonArg string

// maxJSONArg is more than a server takes, unless somebody has told it to, and more than a proof has.
const maxJSONArg = 64 << 20

// read returns the JSON; what is its name in the errors.
func (g jsonArg) read(what string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(string(g), "@")
	if !isFile && g != "-" {
		if !json.Valid([]byte(g)) {
			return nil, usage("%s is no JSON", what)
		}
		return json.RawMessage(g), nil
	}
	if name == "" {
		return nil, usage("%s: behind the @ there is no name of a file", what)
	}
	text, err := readAll(name)
	if err == nil && !json.Valid(text) {
		err = fmt.Errorf("%s is no JSON", inputName(name))
	}
	if err != nil {
		return nil, usage("%s: %w", what, err)
	}
	return text, nil
}

// readAll reads a file; - is standard input.
func readAll(name string) ([]byte, error) {
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return nil, err
		}
		defer file.Close()
	}
	text, err := io.ReadAll(io.LimitReader(file, maxJSONArg+1))
	if err == nil && len(text) > maxJSONArg {
		err = fmt.Errorf("%s has more than %d MiB", inputName(name), maxJSONArg>>20)
	}
	return text, err
}

// inputName is what people call what readAll reads.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}
