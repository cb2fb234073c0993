package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/internal/sanitize"
)

// Program is the state shared by the commands.
type Program struct {
	Name     string // of the binary, in help texts; "" is fermata
	Out, Err io.Writer
	JSON     bool // the output is JSON
	Parser   *kong.Kong
	Command  string // the selected command, such as keys create; "" if there is none
	Screen   bool   // the command uses the whole terminal
}

// ProgramName returns the name of the binary.
func (p *Program) ProgramName() string { return cmp.Or(p.Name, "fermata") }

// maxCellWidth is how many characters of user-provided text a list shows. fermata show prints all
// of it.
const maxCellWidth = 60

// Truncate shortens a text for a cell of a table.
func Truncate(text string) string {
	line := []rune(OneLine(text))
	if len(line) <= maxCellWidth {
		return string(line)
	}
	return string(line[:maxCellWidth-1]) + "…"
}

// OneLine puts a text of another person on one line, so that it cannot imitate other lines of a
// table.
func OneLine(text string) string {
	return EscapeControls(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// FormatClock formats a local time.
func FormatClock(t time.Time) string { return t.Local().Format(time.DateTime + " MST") }

// Print writes a value as JSON or as text.
func (p *Program) Print(value any, text func(w io.Writer)) error {
	if p.JSON {
		return json.NewEncoder(p.Out).Encode(value)
	}
	w := tabwriter.NewWriter(p.Out, 0, 4, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// jsonEscape matches a JSON escape, and captures those of & < >.
var jsonEscape = regexp.MustCompile(`\\(?:u00(26|3[cC]|3[eE])|.)`)

// UnescapeHTML restores & < > in JSON, which many programs escape for browsers.
func UnescapeHTML(data json.RawMessage) string {
	return jsonEscape.ReplaceAllStringFunc(string(data), func(escape string) string {
		switch strings.ToLower(escape) {
		case `\u0026`:
			return "&"
		case `\u003c`:
			return "<"
		case `\u003e`:
			return ">"
		}
		return escape
	})
}

// EscapeControls makes a text of another person safe for a terminal: control and invisible
// characters are shown as escapes.
func EscapeControls(text string) string { return sanitize.Text(text) }

// ErrLimit says that --limit is too small.
var ErrLimit = Usagef("--limit must be at least 1")

// MoreHint is printed after the first page of a list.
const MoreHint = "There are more; use --limit to show them."

// PrintPage prints the first page of a list. A JSON list cannot say that it is incomplete, so that
// is printed on standard error.
func (p *Program) PrintPage(items any, next string, text func(w io.Writer)) error {
	err := p.Print(items, text)
	if err == nil && p.JSON && next != "" {
		fmt.Fprintln(p.Err, MoreHint)
	}
	return err
}

// PrintMore prints a hint if the list is incomplete.
func PrintMore(w io.Writer, next string) {
	if next != "" {
		fmt.Fprintln(w, "\n"+MoreHint)
	}
}

// Ago formats the age of a time.
func Ago(t time.Time) string { return time.Since(t).Round(time.Second).String() + " ago" }

// Sleep waits, or returns an error when ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
