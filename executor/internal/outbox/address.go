package outbox

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/desk"
)

// address is where a notice is sent.
type address struct {
	Channel, To string
	// Target is the target of the route that led here, Person whose address it is.
	Target, Person string
	// NotBefore is the end of the quiet hours of the person; zero if they are not now.
	NotBefore time.Time
}

// addressesOf returns the addresses of a notice, each once, and the targets without one.
func (o *Sender) addressesOf(account string, notice desk.Notice, now time.Time) (addresses []address, rest []string, err error) {
	add := func(a address) {
		if !slices.ContainsFunc(addresses, func(b address) bool { return a.Channel == b.Channel && a.To == b.To }) {
			addresses = append(addresses, a)
		}
	}
	for _, target := range notice.Targets {
		kind, name, _ := strings.Cut(target, ":")
		if o.channels[kind] != nil && kind != channel.AnyKind {
			add(address{Channel: kind, To: name, Target: target})
			continue
		}
		people, err := o.personalAddresses(account, notice, target, now)
		if err != nil {
			return nil, nil, err
		}
		for _, a := range people {
			add(a)
		}
		switch {
		case o.channels[channel.AnyKind] != nil:
			add(address{Channel: channel.AnyKind, To: target, Target: target})
		case len(people) == 0:
			rest = append(rest, target)
		}
	}
	return addresses, rest, nil
}

// personalAddresses returns the addresses of the people that a target names.
func (o *Sender) personalAddresses(account string, notice desk.Notice, target string, now time.Time) ([]address, error) {
	return nil, nil
}
