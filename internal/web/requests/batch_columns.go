package requests

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/web/page"
)

// column is an argument that differs between the requests of a batch.
type column struct {
	Name string
	// Number reports that all values are numbers, which are aligned at their points.
	Number   bool
	values   []string
	decimals int // the most of a value
}

var shownNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// newColumn returns the column of the values of an argument.
func newColumn(name string, values []string) column {
	c := column{Name: name, values: values, Number: true}
	for _, value := range values {
		text := strings.Trim(value, `"`)
		c.Number = c.Number && shownNumber.MatchString(text)
		c.decimals = max(c.decimals, decimalsOf(text))
	}
	return c
}

func decimalsOf(number string) int {
	if _, fraction, ok := strings.Cut(number, "."); ok {
		return len(fraction)
	}
	return 0
}

// pad returns the spaces that align a number with the others of its column.
func (c column) pad(value string) string {
	decimals := decimalsOf(strings.Trim(value, `"`))
	if !c.Number || decimals == c.decimals {
		return ""
	}
	n := c.decimals - decimals
	if decimals == 0 {
		n++ // the point
	}
	return strings.Repeat("\u00a0", n)
}

// identifiers matches the names of numbers that tell objects apart.
var identifiers = regexp.MustCompile(`(?i:^|[_-])(?i:id|no|nr|number|order|invoice|payment|ticket|ref|reference)$|[a-z](Id|ID|No|Nr|Number)$`)

// isIdentifier reports whether the values only tell the requests apart, such as names or order
// numbers: all differ. A number is one only if its name says so, otherwise it may say how much.
func (c column) isIdentifier() bool {
	distinct := slices.Compact(slices.Sorted(slices.Values(c.values)))
	return len(distinct) == len(c.values) && (!c.Number || identifiers.MatchString(c.Name) && c.decimals == 0)
}

// isUnusual reports whether a value differs from most others: a number that is far from them, or a
// text where at least three quarters of the requests have the same one.
func (c column) isUnusual(value string) bool {
	switch {
	case len(c.values) < minBatch || c.isIdentifier():
		return false
	case c.Number:
		return isFar(value, c.values)
	}
	counts := make(map[string]int)
	for _, v := range c.values {
		counts[v]++
	}
	for other, n := range counts {
		if 4*n >= 3*len(c.values) {
			return value != other
		}
	}
	return false
}

// isFar reports whether a number is far from the others: more than four times the median distance
// from the median, and more than half of the median.
func isFar(value string, all []string) bool {
	numbers := make([]float64, 0, len(all))
	for _, text := range append([]string{value}, all...) {
		n, err := strconv.ParseFloat(strings.Trim(text, `"`), 64)
		if err != nil {
			return false
		}
		numbers = append(numbers, n)
	}
	x, numbers := numbers[0], numbers[1:]
	middle := median(numbers)
	distances := make([]float64, len(numbers))
	for i, n := range numbers {
		distances[i] = math.Abs(n - middle)
	}
	away := math.Abs(x - middle)
	return away > 4*median(distances) && away > math.Abs(middle)/2
}

func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// sumText returns the sum of the amounts of requests with its currency; "" if they have no amount,
// or several currencies.
func sumText(items []batchItem) string {
	sum, decimals, currency := new(big.Rat), 0, ""
	for i, item := range items {
		amount, unit := "", ""
		for _, a := range item.Args {
			switch text := strings.Trim(string(a.Value), `"`); {
			case a.Name == "currency":
				unit = text
			case amounts.MatchString(a.Name) && amount == "" && shownNumber.MatchString(text):
				amount = text
			}
		}
		n, ok := new(big.Rat).SetString(amount)
		if !ok || i > 0 && unit != currency {
			return ""
		}
		sum.Add(sum, n)
		currency, decimals = unit, max(decimals, decimalsOf(amount))
	}
	if currency != "" && decimals == 1 {
		decimals = 2
	}
	return strings.TrimSpace(sum.FloatString(decimals) + " " + currency)
}

// Heading says what will be decided: "Approve 12 × refund, 340.20 EUR in all".
func (d *batchData) Heading(v *page.Visit) string {
	text := v.TN("batch.confirm."+d.Confirm, len(d.Chosen()), d.Action)
	if sum := sumText(d.Chosen()); sum != "" {
		text += ", " + v.T("batch.sum", sum)
	}
	return text
}

// Chosen returns the selected requests.
func (d *batchData) Chosen() []batchItem {
	return slices.DeleteFunc(slices.Clone(d.Items), func(i batchItem) bool { return !i.Checked })
}
