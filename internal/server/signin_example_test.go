package server_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// People sign in at an identity provider; their groups define their roles. Programs have API keys.
func ExampleSignIn() {
	store := memory.NewStore(nil)
	key := keyFile() // executor.MakeKey creates one
	defer os.Remove(key)
	box, err := executor.OpenKeyFile(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, _ := executor.New(executor.Config{Store: store, Sealer: box})
	_, err = server.New(server.Config{
		Executor: e, Auth: authn.Keys(store),
		SignIn: &authn.SignIn{Credentials: store, Sealer: box, OIDC: &authn.OIDC{
			Issuer: "https://idp.example", ClientID: "fermata", ClientSecret: "…",
			RedirectURL: "https://fermata.example/signin/callback",
			Account:     "acme",
			Roles: map[string][]authn.Role{
				"platform":   {authn.RoleApprover, authn.RoleAuditor},
				"compliance": {authn.RoleAuditor},
			},
		}},
	})
	fmt.Println(err)
	// Output: <nil>
}

// On their own machine a developer follows a link that the program prints.
func ExampleServer_DevLink() {
	store := memory.NewStore(nil)
	key := keyFile() // executor.MakeKey creates one
	defer os.Remove(key)
	box, err := executor.OpenKeyFile(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, _ := executor.New(executor.Config{Store: store, Sealer: box})
	s, err := server.New(server.Config{Executor: e, Auth: authn.Keys(store), SignIn: &authn.SignIn{Credentials: store, Sealer: box}})
	if err != nil {
		fmt.Println(err)
		return
	}
	you := authn.Principal{Account: "demo", ID: "you", Roles: []authn.Role{authn.RoleAdmin}}
	_, err = s.DevLink(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, you, "/")
	fmt.Println(err)
	_, err = s.DevLink(&net.TCPAddr{IP: net.IPv4zero, Port: 8080}, you, "/")
	fmt.Println(err)
	// Output:
	// <nil>
	// authn: development sign-in needs a listener on a loopback address, such as 127.0.0.1
}

// keyFile is shared by all replicas.
func keyFile() string {
	path := filepath.Join(os.TempDir(), rand.Text())
	if err := executor.CreateKeyFile(path); err != nil {
		panic(err)
	}
	return path
}
