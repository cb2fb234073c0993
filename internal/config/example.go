package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const exampleHeader = `# Configuration of fermata serve: every key with its default.
# Check a file with: fermata config check FILE
# Select the file with --config or FERMATA_CONFIG.
#
# Later sources override earlier ones: the default, this file, the environment, the command line.
# The variable of a key is FERMATA_ and the key in capitals, with _ for each dot and between words:
# store.urlFile is FERMATA_STORE_URL_FILE. List elements are separated by commas there.
# Empty variables are ignored. File names are relative to the server's working directory.
#
# Unknown keys are errors.
`

// Example returns a file with every key, its default and its description.
func Example() []byte {
	var b bytes.Buffer
	b.WriteString(exampleHeader)
	for _, part := range settings(Default()).children {
		b.WriteByte('\n')
		part.write(&b, "")
	}
	return b.Bytes()
}

func (s setting) write(b *bytes.Buffer, indent string) {
	for _, line := range wrapped(s.tag.Get("help"), 96-len(indent)) {
		fmt.Fprintf(b, "%s# %s\n", indent, line)
	}
	if s.children == nil {
		fmt.Fprintf(b, "%s%s: %s\n", indent, s.name, s.text())
		return
	}
	fmt.Fprintf(b, "%s%s:\n", indent, s.name)
	for _, part := range s.children {
		part.write(b, indent+"  ")
	}
}

// text returns the value as written in a file.
func (s setting) text() string {
	switch v := s.value.Interface().(type) {
	case string:
		return strconv.Quote(v)
	case Secret:
		return strconv.Quote(v.Reveal())
	case time.Duration:
		return formatDuration(v)
	case []string:
		texts := make([]string, len(v))
		for i, text := range v {
			texts[i] = strconv.Quote(text)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case []Secret, Assistants:
		return "[]" // these have no default
	case Names:
		if len(v) > 0 {
			return fmt.Sprint(map[string]string(v))
		}
		return "{}"
	case Roles, Classes, OnCall:
		return "{}"
	default:
		return fmt.Sprint(v)
	}
}

func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// KeyInfo describes a key, for JSON output.
type KeyInfo struct {
	Key     string `json:"key"`
	Env     string `json:"env"`
	Default string `json:"default"` // as written in a file
	Help    string `json:"help"`
}

// Describe lists every key.
func Describe() []KeyInfo {
	var list []KeyInfo
	root := settings(Default())
	for _, s := range root.all() {
		list = append(list, KeyInfo{Key: s.path, Env: env(s.path), Default: s.text(), Help: s.tag.Get("help")})
	}
	return list
}
