package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// JSONArg is a JSON argument: the JSON itself, or a reference to a file or standard input. A
// command line has a limited length and is visible to other users of the machine. JSON never begins
// with @ and is never -, so no quoting is needed.
type JSONArg string

// MaxJSONArg is more than the default limit of a server, and more than the size of a proof.
const MaxJSONArg = 64 << 20

// Read returns the JSON; what is its name in errors.
func (g JSONArg) Read(what string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(string(g), "@")
	if !isFile && g != "-" {
		if !json.Valid([]byte(g)) {
			return nil, Usagef("%s is not valid JSON", what)
		}
		return json.RawMessage(g), nil
	}
	if name == "" {
		return nil, Usagef("%s: the file name after @ is missing", what)
	}
	text, err := ReadAll(name)
	if err == nil && !json.Valid(text) {
		err = fmt.Errorf("%s is not valid JSON", inputName(name))
	}
	if err != nil {
		return nil, Usagef("%s: %w", what, err)
	}
	return text, nil
}

// ReadAll reads a file; - is standard input.
func ReadAll(name string) ([]byte, error) {
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return nil, err
		}
		defer file.Close()
	}
	text, err := io.ReadAll(io.LimitReader(file, MaxJSONArg+1))
	if err == nil && len(text) > MaxJSONArg {
		err = fmt.Errorf("%s is larger than %d MiB", inputName(name), MaxJSONArg>>20)
	}
	return text, err
}

// inputName returns a name for the input of readAll.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}
