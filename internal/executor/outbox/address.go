package outbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/desk/people"
	"github.com/fermata-go/fermata/internal/executor/docs"
)

// lookupTimeout is how long a directory may take to list people, while other notices
// wait.
const lookupTimeout = 5 * time.Second

// Why people are not reached, as requests show it.
const (
	codeNoAddress     = "no_address"
	codeNoOneOnCall   = "no_one_on_call"
	codeEmptyGroup    = "empty_group"
	codeDirectoryDown = "directory_unavailable"
	codeAway          = "away"
	codeNoStandIn     = "delegate_not_eligible"
	codeExcluded      = "excluded"
	codeNotVisible    = "not_visible"
)

// address is where a notice is sent.
type address struct {
	Channel, To string
	// Target is the target of the route that led here, Person whose address it is.
	Target, Person string
	// NotBefore is the end of the quiet hours of the person; zero if they are not now.
	NotBefore time.Time
}

// unreached is a target or a person that a notice does not reach.
type unreached struct{ target, code string }

// expansion finds the addresses of a notice.
type expansion struct {
	sender       *Sender
	account, run string
	notice       desk.Notice
	request      *desk.Request // nil if it cannot be read
	now          time.Time

	addresses []address // each once
	inInbox   []string  // targets that people find in the inbox
	unreached []unreached
}

// expand finds the addresses of all targets. Every request is in the inbox, whatever the settings
// of people say.
func (x *expansion) expand(ctx context.Context) error {
	o := x.sender
	for _, target := range x.notice.Targets {
		kind, name, _ := strings.Cut(target, ":")
		if o.channels[kind] != nil && kind != channel.AnyKind {
			x.add(address{Channel: kind, To: name, Target: target})
			continue
		}
		if target == desk.TargetInbox {
			if err := x.addInbox(ctx); err != nil {
				return err
			}
		}
		before := len(x.addresses) + len(x.unreached)
		named, err := x.addPeople(ctx, target)
		if err != nil {
			return err
		}
		if o.channels[channel.AnyKind] != nil {
			x.add(address{Channel: channel.AnyKind, To: target, Target: target})
			continue
		}
		switch {
		case len(x.addresses)+len(x.unreached) > before:
		case o.inbox.Serves(x.notice.Kind, target), named && x.notice.Kind != desk.NoticePage:
			x.inInbox = append(x.inInbox, target)
		default:
			x.miss(target, codeNoAddress)
		}
	}
	return nil
}

func (x *expansion) add(a address) {
	if !slices.ContainsFunc(x.addresses, func(b address) bool { return a.Channel == b.Channel && a.To == b.To }) {
		x.addresses = append(x.addresses, a)
	}
}

func (x *expansion) miss(target, code string) {
	if u := (unreached{target, code}); !slices.Contains(x.unreached, u) {
		x.unreached = append(x.unreached, u)
	}
}

// addPeople adds the addresses of the people that a target names. named reports that it names at
// least one person who may be told.
func (x *expansion) addPeople(ctx context.Context, target string) (named bool, err error) {
	if x.request == nil {
		return false, nil
	}
	if x.notice.Kind == desk.NoticeResolve { // others may be on call by now
		return false, x.addPaged(ctx, target)
	}
	names, code := x.peopleOf(ctx, target)
	if code != "" {
		x.miss(target, code)
		return false, nil
	}
	single := strings.HasPrefix(target, "user:")
	excluded := 0
	for _, person := range names {
		switch code := x.whyNot(person, single); code {
		case "":
			named = true
			if err := x.addPerson(ctx, target, person); err != nil {
				return named, err
			}
		case codeExcluded: // the others of the group decide
			excluded++
		default:
			x.miss("user:"+person, code)
		}
	}
	if excluded > 0 && excluded == len(names) {
		x.miss(target, codeExcluded)
	}
	return named, nil
}

// peopleOf returns the people that a target names, or the code of a problem. Both are empty for
// targets whose people are not known.
func (x *expansion) peopleOf(ctx context.Context, target string) (names []string, code string) {
	kind, name, _ := strings.Cut(target, ":")
	if kind == "user" {
		return []string{name}, ""
	}
	lister, ok := x.sender.config.Directory.(desk.Lister)
	if !ok || kind != "group" && kind != "oncall" {
		return nil, ""
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	names, found, err := lister.People(ctx, target)
	switch {
	case err != nil:
		x.sender.config.Log.Error("people of a target not found", "account", x.account, "target", target, "err", err)
		return nil, codeDirectoryDown
	case found && len(names) == 0 && kind == "oncall":
		return nil, codeNoOneOnCall
	case found && len(names) == 0:
		return nil, codeEmptyGroup
	}
	names = slices.Sorted(slices.Values(names))
	return slices.Compact(names), ""
}

// whyNot returns why a person is not told of the request, or "". A target for one person also
// reaches a person whom separation of duties excludes.
func (x *expansion) whyNot(person string, named bool) string {
	visible, err := x.sender.requests.MaySee(*x.request, desk.Viewer{ID: person, Kind: desk.ActorHuman})
	switch {
	case err != nil:
		return codeDirectoryDown
	case !visible:
		return codeNotVisible
	case !named && isInvitation(x.notice) && errors.Is(x.sender.requests.MayDecide(*x.request, person), desk.ErrExcluded):
		return codeExcluded
	}
	return ""
}

// addPerson adds the addresses of a person, or of their delegate while they are absent.
func (x *expansion) addPerson(ctx context.Context, target, person string) error {
	profile, err := x.sender.person(ctx, x.account, person)
	if err != nil {
		return err
	}
	receiver := person
	for range maxStandIns {
		if !profile.Settings.AwayAt(x.now) || !isInvitation(x.notice) {
			break
		}
		delegate := profile.Settings.Away.Delegate
		if delegate == "" {
			x.miss("user:"+person, codeAway)
			return nil
		}
		if delegate == person || x.sender.requests.CanStandIn(*x.request, person, delegate) != nil || x.whyNot(delegate, false) != "" {
			x.miss("user:"+person, codeNoStandIn)
			return nil
		}
		receiver = delegate
		if profile, err = x.sender.person(ctx, x.account, delegate); err != nil {
			return err
		}
	}
	about := people.About{Notice: x.notice.Kind, Kind: x.request.Subject.Kind, Risk: x.request.Subject.Risk}
	if profile.Settings.AwayAt(x.now) && isInvitation(x.notice) {
		x.miss("user:"+person, codeAway) // so are all delegates
		return nil
	}
	for _, a := range profile.Addresses {
		if x.sender.channels[a.Channel] == nil || !profile.Settings.Uses(a.Channel, about) {
			continue
		}
		if linked, err := x.sender.isLinked(ctx, x.account, receiver, a); err != nil {
			return err
		} else if linked {
			x.add(address{Channel: a.Channel, To: a.To, Target: target, Person: receiver, NotBefore: profile.Settings.NotBefore(x.now, about)})
		}
	}
	return nil
}

// maxStandIns is how many delegates are asked in turn while each is absent.
const maxStandIns = 5

// addPaged adds the addresses that were paged for a target.
func (x *expansion) addPaged(ctx context.Context, target string) error {
	all, err := x.sender.requestDeliveries(ctx, x.account, x.run, x.notice.Request)
	if err != nil {
		return err
	}
	for _, document := range all {
		index, body, err := x.sender.readDelivery(document)
		if err != nil {
			return err
		}
		if index.Kind == desk.NoticePage && body.Person != "" && body.Target == target && body.Notice.Incident == x.notice.Incident && index.Sent > 0 {
			x.add(address{Channel: index.Channel, To: body.To, Target: target, Person: body.Person})
		}
	}
	return nil
}

// isLinked reports whether an address still belongs to a person: its link may have been revoked, or
// the account linked to another person.
func (o *Sender) isLinked(ctx context.Context, account, person string, a docs.PersonAddress) (bool, error) {
	if a.Sender == "" {
		return true, nil
	}
	var link docs.ChannelLink
	document, err := o.store.Document(ctx, account, docs.LinkKind, linkID(a.Channel, a.Sender))
	if docs.IsNotFound(err) {
		return false, nil
	}
	if err == nil {
		err = o.docs.DecodeBody(document, &link)
	}
	return link.Principal == person && !link.Revoked, err
}
