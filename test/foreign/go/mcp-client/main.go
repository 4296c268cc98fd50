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
			return add(&mcp.StreamableClientTransport{Endpoint: url})
		},
		"sse": func(url string, _ bool) (string, error) {
			return add(&mcp.SSEClientTransport{Endpoint: url})
		},
	})
}

// add lists the tools of a server and calls one of them.
func add(transport mcp.Transport) (string, error) {
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
	arguments := map[string]any{"a": 2, "b": 40}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: arguments})
	if err != nil {
		return "", err
	}
	text := result.Content[0].(*mcp.TextContent).Text
	return fmt.Sprintf("%d tools, %s", len(listed.Tools), text), nil
}
