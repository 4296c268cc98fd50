import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema;
import java.net.URI;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectMapper;

/** Runs the cases of the environment variable CASES, and prints one line of JSON for each: its answer, or its error. */
class Main {
  static final ObjectMapper JSON = new ObjectMapper();

  /** The server answers after as many seconds. */
  static final int WAIT = -600;

  public static void main(String[] args) throws Exception {
    for (JsonNode each : JSON.readTree(System.getenv("CASES"))) {
      Map<String, Object> line = new LinkedHashMap<>();
      line.put("case", each.get("name").asString());
      try {
        line.put("answer", add(each.get("do").asString(), each.get("url").asString()));
      } catch (Throwable error) {
        line.put("error", shown(error));
      }
      System.out.println(JSON.writeValueAsString(line));
    }
    System.exit(0);
  }

  /** Lists the tools of a server and calls one of them. */
  static String add(String what, String url) {
    // Over the older transport it hears of no refusal, and waits for this long.
    var begins = Duration.ofSeconds(5);
    var lasts = Duration.ofSeconds(60);
    var settings = McpClient.sync(transport(what, url)).initializationTimeout(begins).requestTimeout(lasts);
    try (var client = settings.build()) {
      client.initialize();
      int listed = client.listTools().tools().size();
      Map<String, Object> arguments = Map.of("a", what.startsWith("wait") ? WAIT : 2, "b", 40);
      var result = client.callTool(McpSchema.CallToolRequest.builder("add").arguments(arguments).build());
      return listed + " tools, " + ((McpSchema.TextContent) result.content().get(0)).text();
    }
  }

  /** Both transports take an origin and a path. By default the path is /mcp or /sse. */
  static McpClientTransport transport(String what, String url) {
    URI at = URI.create(url);
    String origin = at.getScheme() + "://" + at.getAuthority();
    String path = url.substring(origin.length());
    return what.endsWith("http")
        ? HttpClientStreamableHttpTransport.builder(origin).endpoint(path).build()
        : HttpClientSseClientTransport.builder(origin).sseEndpoint(path).build();
  }

  /** The messages of an error and its causes. */
  static Map<String, String> shown(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = error; each != null; each = each.getCause()) text.append(each.getMessage()).append(' ');
    return Map.of("type", error.getClass().getSimpleName(), "text", text.toString(), "fields", "");
  }
}
