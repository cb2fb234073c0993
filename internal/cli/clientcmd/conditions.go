package clientcmd

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/cli"
)

// conditionFlags are the conditions of an approval.
type conditionFlags struct {
	Until  string   `help:"The approval ends at this time: a duration such as 2h or 3d, or an RFC 3339 time." placeholder:"TIME"`
	OnlyIf string   `help:"The approval is valid only if this CEL expression is true when the action begins." placeholder:"CEL"`
	UpTo   []string `help:"The approval is valid only up to this value of an argument, for example amount=100; may be repeated." placeholder:"ARG=NUMBER"`
}

func (c conditionFlags) isZero() bool { return c.Until == "" && c.OnlyIf == "" && len(c.UpTo) == 0 }

// conditions returns the conditions. now is the start of durations.
func (c conditionFlags) conditions(now time.Time) (all fermata.Conditions, err error) {
	if c.Until != "" {
		until, err := untilFlag{Until: c.Until}.at(now)
		if err != nil {
			return all, err
		}
		all.Until = until.UTC().Truncate(time.Second)
	}
	all.OnlyIf = c.OnlyIf
	for _, limit := range c.UpTo {
		expression, err := upTo(limit)
		if err != nil {
			return all, err
		}
		all = all.And(fermata.Conditions{OnlyIf: expression})
	}
	return all, nil
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// upTo returns the CEL expression of --up-to: order.amount=100 is args.order.amount <= 100.
func upTo(limit string) (string, error) {
	name, number, found := strings.Cut(limit, "=")
	var value json.Number
	if !found || name == "" || json.Unmarshal([]byte(number), &value) != nil || value.String() != number {
		return "", cli.Usagef("--up-to %s: write the name of an argument, = and a number, for example amount=100", limit)
	}
	path := "args"
	for member := range strings.SplitSeq(name, ".") {
		if identifier.MatchString(member) {
			path += "." + member
		} else {
			path += "[" + strconv.Quote(member) + "]"
		}
	}
	return path + " <= " + number, nil
}

// conditionsSuffix returns the conditions of a vote for a line of text.
func conditionsSuffix(c *fermata.Conditions) string {
	if c == nil {
		return ""
	}
	return ", " + c.String()
}
