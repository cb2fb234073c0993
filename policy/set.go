package policy

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options are what [Load] may know beside the file. The zero value works.
type Options struct {
	// Directory, if given, makes a group that is not there, is empty or too small a load error.
	Directory Directory
	// Routes, if not nil, are those that there are. To name another one is a load error.
	Routes []string
	// Untold are fields of req that whoever will ask never tells, as in [Input.UnknownFields]. To look at one that the file does not tell of tools either is a
	// load error: such a rule could never be judged.
	UnknownFields []string
}

// Set is a file of rules, loaded and ready to decide. It does not change, and may be used by several goroutines.
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
	byTool         map[string][]int  // rules that can only hit for this tool
	general        []int             // rules that can hit for any
	sharedCounters []counterTemplate // what rules for single tools count of the actions with all tools
}

// Load makes a set of the bytes of a file. A file with a mistake anywhere is not loaded at all: the error is a [*LoadError]
// that lists every mistake with its line. The name of the file only serves for messages.
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
		for _, tool := range union(nil, one.info.tools) {
			s.byTool[tool] = append(s.byTool[tool], i)
		}
		s.addSharedCounters(one)
	}
	return s, nil
}

// countAll notes what a rule for some tools counts beside its own: an action with any tool is charged to it, though the rule is not judged then.
func (s *Set) addSharedCounters(one *rule) {
	for _, count := range one.info.counts {
		if !slices.Contains(strings.Split(count.by, ","), "tool") && !slices.Contains(s.sharedCounters, count.counterTemplate) {
			s.sharedCounters = append(s.sharedCounters, count.counterTemplate)
		}
	}
}

// Digest is the identity of the set: that of the bytes it was loaded from.
func (s *Set) Digest() string { return s.digest }

// Source is the file, byte for byte: what [Load] takes to make the same set again.
func (s *Set) Source() string { return s.source }

// RuleDigest changes when what a rule says does; it is that of a [Trace]. It is "" if there is no such rule.
func (s *Set) RuleDigest(id string) string {
	for _, one := range s.rules {
		if one.ID == id {
			return one.digest
		}
	}
	return ""
}

// Version is the label in the file, for people.
func (s *Set) Version() string { return s.version }

// File is the name under which the set was loaded.
func (s *Set) File() string { return s.file }

// Default is the verdict where no rule speaks, and what it demands if that is to ask.
func (s *Set) Default() (Verdict, *Requirement) {
	if s.defaultVerdict != Ask {
		return s.defaultVerdict, nil
	}
	return s.defaultVerdict, s.defaultAsk.clone()
}

// Rules returns the rules in the order of the file.
func (s *Set) Rules() []Rule {
	rules := make([]Rule, 0, len(s.rules))
	for _, one := range s.rules {
		rules = append(rules, one.Rule.clone())
	}
	return rules
}

// toolNames are the tools that the file speaks of.
func (s *Set) toolNames() []string {
	return subtract(slices.Sorted(maps.Keys(s.ratings)), []string{anyTool})
}

// candidates are the rules that can hit for a tool, in the order of the file.
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

// Window is the longest of the spans of time that the rules look back; 0 if none does.
func (s *Set) LongestWindow() (longest time.Duration) {
	for _, one := range s.rules {
		for s := range one.queryTemplates() {
			longest = max(longest, s.window)
		}
	}
	return longest
}

// Demands lists the numbers from the past that the rules need to judge this input. The caller puts them into its History.
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
