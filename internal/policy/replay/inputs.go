package replay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// maxLine is the maximum length of one input.
const maxLine = 16 << 20

// ReadInputs reads recorded inputs, one JSON encoded [policy.Input] per line. Empty lines are
// skipped. An invalid line ends the inputs with an error that has the line number.
func ReadInputs(r io.Reader) iter.Seq2[policy.Input, error] {
	return func(yield func(policy.Input, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		number := 0
		for lines.Scan() {
			number++
			text := bytes.TrimSpace(lines.Bytes())
			if len(text) == 0 {
				continue
			}
			var in policy.Input
			if err := strictjson.Decode(bytes.Clone(text), &in); err != nil {
				yield(policy.Input{}, fmt.Errorf("%w: line %d: %w", policy.ErrInput, number, err))
				return
			}
			if !yield(in, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(policy.Input{}, fmt.Errorf("%w: line %d: %w", policy.ErrInput, number+1, err))
		}
	}
}

// Print writes the summary for people.
func (s Summary) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d inputs\n", s.Inputs)
	for _, verdict := range []policy.Verdict{policy.Deny, policy.Ask, policy.Allow} {
		fmt.Fprintf(&b, "  %-5s %d\n", verdict, s.Verdicts[verdict])
	}
	b.WriteString("decided by\n")
	for _, id := range slices.Sorted(maps.Keys(s.Rules)) {
		fmt.Fprintf(&b, "  %s %d\n", id, s.Rules[id])
	}
	for _, line := range []struct {
		count int
		say   string
	}{
		{s.DryRunChanges, "would change with the dry-run rules"}, {s.RuleErrors, "had a rule that failed"},
		{s.InvalidInputs, "were invalid"},
	} {
		if line.count > 0 {
			fmt.Fprintf(&b, "%d %s\n", line.count, line.say)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
