package server_test

import (
	"fmt"
	"net"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/box"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store/memory"
)

// People sign in at an identity provider; their groups say what they may do. Programs have keys.
func ExampleSignIn() {
	store := memory.NewRuns(nil)
	key, _ := box.NewKey()
	seal, _ := box.New(key)
	e, _ := executor.New(executor.Config{Store: store, Box: seal})
	_, err := server.New(server.Config{
		Executor: e, Auth: server.Keys(store),
		SignIn: &server.SignIn{Credentials: store, Box: seal, OIDC: &server.OIDC{
			Issuer: "https://idp.example", ClientID: "fermata", ClientSecret: "…",
			RedirectURL: "https://fermata.example/signin/callback",
			Account:     "acme",
			Roles: map[string][]server.Role{
				"platform":   {server.Approver, server.Auditor},
				"compliance": {server.Auditor},
			},
		}},
	})
	fmt.Println(err)
	// Output: <nil>
}

// On their own machine a developer follows a link that the program prints.
func ExampleServer_DevLink() {
	store := memory.NewRuns(nil)
	key, _ := box.NewKey()
	seal, _ := box.New(key)
	e, _ := executor.New(executor.Config{Store: store, Box: seal})
	s, err := server.New(server.Config{Executor: e, Auth: server.Keys(store), SignIn: &server.SignIn{Credentials: store, Box: seal}})
	if err != nil {
		fmt.Println(err)
		return
	}
	you := server.Principal{Account: "demo", ID: "you", Roles: []server.Role{server.Admin}}
	_, err = s.DevLink(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, you, "/")
	fmt.Println(err)
	_, err = s.DevLink(&net.TCPAddr{IP: net.IPv4zero, Port: 8080}, you, "/")
	fmt.Println(err)
	// Output:
	// <nil>
	// server: signing in for development needs a listener on a loopback address, as 127.0.0.1
}
