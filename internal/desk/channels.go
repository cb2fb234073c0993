package desk

import (
	"slices"
	"strings"
)

// Channels are the ways in which a server reaches people. The zero value is the inbox alone: people
// find there what they are asked, but it cannot page anyone.
type Channels struct {
	// All reports that every target is served, for example by a custom function.
	All bool
	// Kinds are the kinds of targets that have a channel, such as slack for slack:C0EMEA.
	Kinds []string
	// Check, if set, returns why a target of one of the kinds is impossible, such as email:ann.
	Check func(target string) error
	// People reports that a channel reaches people one by one, so that targets that name people can
	// be paged.
	People bool
	// Schedules are the names of on-call schedules: db for oncall:db.
	Schedules []string
}

// inboxTargets are the targets that find a request in the inbox.
var (
	inboxTargets = []string{TargetInbox, TargetApprovers, TargetClaimer, TargetRequester}
	inboxKinds   = []string{"group", "user", "role"}
)

// peopleTargets stand for people.
var peopleTargets = []string{TargetApprovers, TargetClaimer, TargetRequester}

// Serves reports whether a notice of a kind reaches a target.
func (c Channels) Serves(kind NoticeKind, target string) bool {
	prefix, name, named := strings.Cut(target, ":")
	scheduled := named && prefix == "oncall" && slices.Contains(c.Schedules, name)
	switch {
	case c.All || named && slices.Contains(c.Kinds, prefix):
		return true
	case kind == NoticePage:
		return c.People && (scheduled || named && (prefix == "group" || prefix == "user") || slices.Contains(peopleTargets, target))
	case scheduled:
		return true
	}
	return slices.Contains(inboxTargets, target) || named && slices.Contains(inboxKinds, prefix)
}

// check returns why a target of a served kind is impossible.
func (c Channels) check(target string) error {
	if prefix, _, named := strings.Cut(target, ":"); c.Check == nil || !named || !slices.Contains(c.Kinds, prefix) {
		return nil
	}
	return c.Check(target)
}

// String lists the targets that are served, for error messages.
func (c Channels) String() string {
	if c.All {
		return "every target"
	}
	all := slices.Clone(inboxTargets)
	for _, kind := range slices.Concat(inboxKinds, c.Kinds) {
		all = append(all, kind+":…")
	}
	for _, name := range c.Schedules {
		all = append(all, "oncall:"+name)
	}
	text := strings.Join(all, ", ")
	if len(c.Kinds) == 0 {
		return text + " (in the inbox); page needs a channel"
	}
	return text
}

// UnservedTarget is a target of a route that no channel serves.
type UnservedTarget struct {
	// Step is the index of the step, Position that of the target in its list. For a region, Step is
	// -1 and Position the index of the region.
	Step, Position int
	Kind           NoticeKind
	Target         string
	// Err says why the target is impossible; nil if no channel serves it.
	Err error
}

// Unserved returns the targets of a route that no channel serves.
func (c Channels) Unserved(r Route) (all []UnservedTarget) {
	regional := make(map[NoticeKind]bool)
	for i, step := range r.Steps {
		kind := step.noticeKind()
		for n, target := range step.targets() {
			if target == TargetRegion {
				regional[kind] = true
			} else if err := c.check(target); err != nil || !c.Serves(kind, target) {
				all = append(all, UnservedTarget{Step: i, Position: n, Kind: kind, Target: target, Err: err})
			}
		}
	}
	for i, region := range r.Regions {
		for _, kind := range []NoticeKind{NoticeNotify, NoticeRemind, NoticePage} {
			if err := c.check(region.Channel); regional[kind] && (err != nil || !c.Serves(kind, region.Channel)) {
				all = append(all, UnservedTarget{Step: -1, Position: i, Kind: kind, Target: region.Channel, Err: err})
				break
			}
		}
	}
	return all
}

// noticeKind returns the kind of the notice of a step: a step has only one.
func (s Step) noticeKind() NoticeKind {
	switch {
	case len(s.Page) > 0:
		return NoticePage
	case len(s.Remind) > 0:
		return NoticeRemind
	}
	return NoticeNotify
}

// ChannelTargets returns the targets of the route that name a channel. The server does not know who
// reads them.
func (r Route) ChannelTargets() (targets []string) {
	for _, step := range r.Steps {
		all := step.targets()
		if step.targetsRegion() {
			for _, region := range r.Regions {
				all = append(all, region.Channel)
			}
		}
		for _, target := range all {
			if kind, _, named := strings.Cut(target, ":"); named && kind != "oncall" && !slices.Contains(inboxKinds, kind) && !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	return targets
}
