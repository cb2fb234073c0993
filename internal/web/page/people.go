package page

import (
	"strings"

	"github.com/fermata-go/fermata/api"
)

// ChannelTitle returns the name of a channel.
func (v *Visit) ChannelTitle(kind string) string {
	if title, ok := v.Texts["channel."+kind]; ok {
		return title
	}
	return kind
}

// OthersViewing names the other people who look at a request.
func (v *Visit) OthersViewing(a *api.Activity) string {
	if a == nil {
		return ""
	}
	var others []string
	for _, viewer := range a.Viewers {
		if viewer.By != v.Me.Principal {
			others = append(others, viewer.By)
		}
	}
	return strings.Join(others, ", ")
}
