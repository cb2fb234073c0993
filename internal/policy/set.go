package policy

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/sets"
)

// Options are optional inputs of [Load]. The zero value works.
type Options struct {
	// Directory, if set, makes a group that does not exist, is empty or is too small a load error.
	Directory Directory
	// Routes, if not nil, are the known routes. An unknown route is a load error.
	Routes []string
	// UnknownFields are fields of req that the caller never sets, as in [Input.UnknownFields]. A
	// rule that uses such a field is a load error, unless the file rates the tool: the rule would
	// always fail.
	UnknownFields []string
	// MaxRules is the maximum number of rules. The default is 10 000.
	MaxRules int
}

// Set is a loaded rule file. It is immutable and safe for concurrent use.
type Set struct {
	file           string
	version        string
	digest         string
	source         string
	defaultVerdict Verdict
	zone           string
	defaultAsk     *Requirement
	ratings        map[string]*compiledRating
	rules          []*rule
	byTool         map[string][]int  // rules that can match only for this tool
	general        []int             // rules that can match for any tool
	sharedCounters []counterTemplate // counters over all tools that rules for single tools use
}

// Load loads a rule file. A file with any error is not loaded: the error is a [*LoadError] that
// lists every error with its line. The file name is only for messages.
func Load(file string, src []byte, options Options) (*Set, error) {
	r := newLoader(file, options)
	d := r.parse(src)
	if err := r.compile(&d); err != nil {
		return nil, err
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, &LoadError{Problems: r.problems}
	}
	s := &Set{
		file: file, version: d.version, digest: digestOf(src), source: string(src), defaultVerdict: d.defaultVerdict, zone: d.zone, defaultAsk: d.defaultAsk, ratings: d.ratings, rules: d.rules,
		byTool: make(map[string][]int),
	}
	for i, one := range s.rules {
		if one.info.tools == nil {
			s.general = append(s.general, i)
			continue
		}
		for _, tool := range sets.Union(nil, one.info.tools) {
			s.byTool[tool] = append(s.byTool[tool], i)
		}
		s.addSharedCounters(one)
	}
	return s, nil
}

// addSharedCounters adds the counters of a rule that count the actions of all tools. They are
// charged for every action, even if the rule is not evaluated.
func (s *Set) addSharedCounters(one *rule) {
	for _, count := range one.info.counts {
		if !slices.Contains(strings.Split(count.by, ","), "tool") && !slices.Contains(s.sharedCounters, count.counterTemplate) {
			s.sharedCounters = append(s.sharedCounters, count.counterTemplate)
		}
	}
}

// Digest returns the digest of the file, which identifies the set.
func (s *Set) Digest() string { return s.digest }

// Source returns the file, byte for byte, as [Load] accepts it.
func (s *Set) Source() string { return s.source }

// RuleDigest returns the digest of a rule, as in [Trace], or "" if there is no such rule.
func (s *Set) RuleDigest(id string) string {
	for _, one := range s.rules {
		if one.ID == id {
			return one.digest
		}
	}
	return ""
}

// Version returns the version label of the file.
func (s *Set) Version() string { return s.version }

// File returns the file name.
func (s *Set) File() string { return s.file }

// Default returns the verdict if no rule matches, and its requirement if the verdict is Ask.
func (s *Set) Default() (Verdict, *Requirement) {
	if s.defaultVerdict != Ask {
		return s.defaultVerdict, nil
	}
	return s.defaultVerdict, s.defaultAsk.Clone()
}

// Rules returns the rules in file order.
func (s *Set) Rules() []Rule {
	rules := make([]Rule, 0, len(s.rules))
	for _, one := range s.rules {
		rules = append(rules, one.Rule.clone())
	}
	return rules
}

// toolNames returns the tools that the file rates.
func (s *Set) toolNames() []string {
	return sets.Subtract(slices.Sorted(maps.Keys(s.ratings)), []string{anyTool})
}

// candidates returns the rules that can match for a tool, in file order.
func (s *Set) candidates(tool string) iter.Seq[*rule] {
	return func(yield func(*rule) bool) {
		own, general := s.byTool[tool], s.general
		for len(own)+len(general) > 0 {
			var next int
			if len(general) == 0 || len(own) > 0 && own[0] < general[0] {
				next, own = own[0], own[1:]
			} else {
				next, general = general[0], general[1:]
			}
			if !yield(s.rules[next]) {
				return
			}
		}
	}
}

// LongestWindow returns the longest window of the rules, or 0 if no rule uses counters.
func (s *Set) LongestWindow() (longest time.Duration) {
	for _, one := range s.rules {
		for s := range one.queryTemplates() {
			longest = max(longest, s.window)
		}
	}
	return longest
}

// CounterQueries returns the counters that the rules need for this input. The caller puts the
// values into its History.
func (s *Set) CounterQueries(in Input) []CounterQuery {
	var demands []CounterQuery
	seen := make(map[queryTemplate]bool)
	for one := range s.candidates(in.Tool) {
		for s := range one.queryTemplates() {
			if !seen[s] {
				seen[s] = true
				demands = append(demands, s.query(&in))
			}
		}
	}
	return demands
}
