package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"presign.test/foreign/cases"
)

func main() {
	cases.Run(cases.Does{
		"http": func(url string, _ bool) (string, error) {
			return add(&mcp.StreamableClientTransport{Endpoint: url}, 2)
		},
		"sse": func(url string, _ bool) (string, error) {
			return add(&mcp.SSEClientTransport{Endpoint: url}, 2)
		},
		"wait_http": func(url string, _ bool) (string, error) {
			return add(&mcp.StreamableClientTransport{Endpoint: url}, wait)
		},
		"wait_sse": func(url string, _ bool) (string, error) {
			return add(&mcp.SSEClientTransport{Endpoint: url}, wait)
		},
	})
}

// The server answers after as many seconds.
const wait = -600

// add lists the tools of a server and calls one of them.
func add(transport mcp.Transport, a int) (string, error) {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "foreign", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return "", err
	}
	arguments := map[string]any{"a": a, "b": 40}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: arguments})
	if err != nil {
		return "", err
	}
	text := result.Content[0].(*mcp.TextContent).Text
	return fmt.Sprintf("%d tools, %s", len(listed.Tools), text), nil
}
