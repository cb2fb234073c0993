package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata/api"
)

type inviteCommand struct {
	remote
	Name string   `arg:"" help:"The name with which the person signs in."`
	Role []string `help:"A role: agent, approver, auditor, user or admin. Repeatable; approver by default." enum:"agent,approver,auditor,user,admin"`
}

// Run prints an invitation link.
func (c *inviteCommand) Run(ctx context.Context, p *program) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	invitation, err := server.Invite(ctx, api.Invite{Name: c.Name, Roles: c.Role})
	if err != nil {
		return err
	}
	invitation.Path = strings.TrimSuffix(c.URL, "/") + invitation.Path
	return p.print(invitation, func(w io.Writer) { fmt.Fprintln(w, invitation.Path) })
}
