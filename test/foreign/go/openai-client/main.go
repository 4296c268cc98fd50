package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"presign.test/foreign/cases"
)

func main() {
	cases.Fields = fields
	cases.Run(cases.Does{"plain": plain, "stream": stream, "tools": tools})
}

func fields(err error) string {
	var refused *openai.Error
	if !errors.As(err, &refused) {
		return err.Error()
	}
	return fmt.Sprint(refused.StatusCode, refused.Code, refused.Message)
}

func newClient(url string, retries bool) openai.Client {
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(url, "/chat/completions")),
		option.WithAPIKey("unused"),
	}
	if !retries {
		options = append(options, option.WithMaxRetries(0))
	}
	return openai.NewClient(options...)
}

func ask(question string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:     "gpt-4o-mini",
		MaxTokens: openai.Int(100),
		Messages:  []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
	}
}

func plain(url string, retries bool) (string, error) {
	client := newClient(url, retries)
	answer, err := client.Chat.Completions.New(context.Background(), ask("Hello"))
	if err != nil {
		return "", err
	}
	return answer.Choices[0].Message.Content, nil
}

func stream(url string, retries bool) (string, error) {
	client := newClient(url, retries)
	chunks := client.Chat.Completions.NewStreaming(context.Background(), ask("Hello"))
	text := ""
	for chunks.Next() {
		for _, choice := range chunks.Current().Choices {
			text += choice.Delta.Content
		}
	}
	return text, chunks.Err()
}

func tools(url string, retries bool) (string, error) {
	client := newClient(url, retries)
	params := ask("What is the weather in Paris?")
	params.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name:        "get_weather",
			Description: openai.String("Current weather of a city"),
			Parameters: openai.FunctionParameters{
				"type":       "object",
				"properties": map[string]any{"city": map[string]string{"type": "string"}},
				"required":   []string{"city"},
			},
		}),
	}
	answer, err := client.Chat.Completions.New(context.Background(), params)
	if err != nil {
		return "", err
	}
	call := answer.Choices[0].Message.ToolCalls[0].Function
	var arguments struct {
		City string `json:"city"`
	}
	err = json.Unmarshal([]byte(call.Arguments), &arguments)
	return call.Name + "(" + arguments.City + ")", err
}
