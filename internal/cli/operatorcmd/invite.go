package operatorcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
)

type InviteCommand struct {
	cli.Remote
	Name string   `arg:"" help:"The name with which the person signs in."`
	Role []string `help:"A role: agent, approver, auditor, user or admin. Repeatable; approver by default." enum:"agent,approver,auditor,user,admin"`
}

// Run prints an invitation link.
func (c *InviteCommand) Run(ctx context.Context, p *cli.Program) error {
	server, err := c.Client()
	if err != nil {
		return err
	}
	invitation, err := server.Invite(ctx, api.Invite{Name: c.Name, Roles: c.Role})
	if err != nil {
		return err
	}
	invitation.Path = strings.TrimSuffix(c.URL, "/") + invitation.Path
	return p.Print(invitation, func(w io.Writer) { fmt.Fprintln(w, invitation.Path) })
}
