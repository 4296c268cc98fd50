// Generated from docs/reference/openapi.json by `pnpm --filter @presign/client generate`. Do not edit.

export interface components {
    schemas: {
        /** @enum {string} */
        CallMethod: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
        CallConfig: {
            [key: string]: unknown;
        };
        Metadata: {
            [key: string]: unknown;
        };
        /**
         * @example {
         *       "provider": "openai",
         *       "path": "/v1/chat/completions",
         *       "client_api_key": "sk-your-openai-key",
         *       "expires_in": 600,
         *       "max_uses": 20,
         *       "cost_limit": 250000,
         *       "config": {
         *         "model": "gpt-4.1-mini",
         *         "max_tokens": 500
         *       },
         *       "external_user": "user-42"
         *     }
         */
        PresignRequest: {
            /** @description openai, anthropic, google, cohere, groq, another built-in provider, or one that the operator added. */
            provider: string;
            /** @description One allowed path, or 1 to 50. A path is everything after the provider's origin, version prefix included. The URL ends in the first path. In the others, * stands for any characters except /. */
            path: string | string[];
            /** @description The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored. Required without virtual_key. */
            client_api_key?: string | null;
            /** @description Id of a virtual key of this provider. It takes precedence over client_api_key. */
            virtual_key?: string | null;
            /**
             * @description The HTTP method of the calls.
             * @default POST
             */
            method?: components["schemas"]["CallMethod"] | null;
            /**
             * @description Validity in seconds. -1: one year.
             * @default 3600
             */
            expires_in?: number | null;
            /**
             * @description Fields that replace those of the holder in the JSON body of every call, such as model or max_tokens. At most 16384 bytes.
             * @example {
             *       "model": "gpt-4.1-mini",
             *       "max_tokens": 500
             *     }
             */
            config?: components["schemas"]["CallConfig"] | null;
            /**
             * @description The models that calls may use, 1 to 50 names. A call that does not say which model it uses is refused. Left out: all.
             * @example [
             *       "gpt-4.1-mini",
             *       "gpt-4.1-nano"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description How many bytes the body of a call may have, as it is sent and as it is decoded. Left out: as many as the gateway takes.
             * @example 65536
             */
            max_body_bytes?: number | null;
            /**
             * @description The top-level fields that the JSON body of a call may have, at most 100. Fields that config sets need not be named. Left out: all.
             * @example [
             *       "messages",
             *       "stream"
             *     ]
             */
            allowed_fields?: string[] | null;
            /** @description true: the URL can also be opened as a WebSocket, where its provider has one: OpenAI on `/v1/responses`. Each turn is a call. Left out: an upgrade is refused with 426. */
            sockets?: boolean | null;
            /**
             * @description Microdollars that may be spent (1 dollar = 1000000). 0: only calls that cost nothing pass. Left out: unlimited.
             * @example 250000
             */
            cost_limit?: number | null;
            /**
             * @description How many calls may be made. -1, null: unlimited.
             * @default -1
             */
            max_uses?: number | null;
            /**
             * @description How many calls may be made in a minute, at once or spread over it. Left out: unlimited.
             * @example 60
             */
            calls_per_minute?: number | null;
            /**
             * @description How many calls may be made in 24 hours, at once or spread over them. Left out: unlimited.
             * @example 50
             */
            calls_per_day?: number | null;
            /**
             * @description How many calls may be under way at once. Left out: unlimited.
             * @example 10
             */
            concurrent_calls?: number | null;
            /**
             * @description How many tokens of input and output calls may use in a minute. A call takes the most that it can use, and gives the rest back when it ends. Left out: unlimited.
             * @example 100000
             */
            tokens_per_minute?: number | null;
            /**
             * @description The pages and addresses that may call the URL. Left out: all.
             * @example {
             *       "origins": [
             *         "https://app.example.com"
             *       ],
             *       "ip_ranges": [
             *         "192.0.2.0/24",
             *         "2001:db8::/32"
             *       ]
             *     }
             */
            bind?: components["schemas"]["BindRequest"] | null;
            /** @description Your own id of a session. Sessions can be filtered by it. */
            external_session?: string | null;
            /** @description Your own id of the user to be billed. Usage and sessions can be filtered by it. */
            external_user?: string | null;
            /** @description The session to join. It must belong to this account and not be revoked. An id that does not exist yet creates a session. Left out: a new session. */
            session_id?: string | null;
            /** @description Your own data, at most 65536 bytes of JSON. GET /v1/sessions/{id} returns it. */
            metadata?: components["schemas"]["Metadata"] | null;
        };
        BindRequest: {
            /** @description The origins whose pages may call the URL, at most 50. A call without the header Origin is refused, too. */
            origins?: string[] | null;
            /** @description The client addresses that may call the URL, at most 50 of IPv4 and IPv6, or ranges of them in CIDR form. */
            ip_ranges?: components["schemas"]["AddressRange"][] | null;
        };
        AddressRange: string;
        /**
         * @example {
         *       "url": "https://gateway.example.com/llm/t/v4.public.eyJ.../v1/chat/completions",
         *       "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
         *       "expires_at": 1767225600,
         *       "grant_id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
         *       "claims": {
         *         "jti": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
         *         "sub": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
         *         "iat": "2025-12-31T23:50:00.000Z",
         *         "exp": "2026-01-01T00:00:00.000Z",
         *         "iss": "https://presign.example.com",
         *         "aud": "https://gateway.example.com",
         *         "prt": 17,
         *         "knd": "llm",
         *         "prv": "openai",
         *         "mth": "POST",
         *         "pth": [
         *           "/v1/chat/completions"
         *         ]
         *       }
         *     }
         */
        PresignAnswer: {
            /**
             * Format: uri
             * @description The URL that the holder calls instead of the provider. It contains no key.
             */
            url: string;
            /** Format: uuid */
            session_id: string;
            /**
             * @description Unix time in seconds. The URL is refused from then on.
             * @example 1767225600
             */
            expires_at: number;
            /**
             * Format: uuid
             * @description The id of its grant, for `/v1/grants/{id}`.
             */
            grant_id: string;
            /** @description The claims that its token carries. Anyone with the URL can read them. */
            claims: components["schemas"]["LlmClaims"];
            /** @description Under its `cost_limit` no call of this URL can pass. It is issued all the same, unless the policy of the API key has `refuse_warnings`. */
            warnings?: components["schemas"]["Warning"][];
        };
        /** @enum {string} */
        CriticalClaim: "calls_per_day" | "tokens_per_minute" | "max_body_bytes" | "allowed_fields" | "shared_budgets" | "bind" | "arguments" | "sockets";
        LlmClaims: {
            /**
             * Format: uuid
             * @description Grant id.
             */
            jti: string;
            /**
             * Format: uuid
             * @description Session id.
             */
            sub: string;
            /**
             * Format: date-time
             * @description When it was issued.
             */
            iat: string;
            /**
             * Format: date-time
             * @description When the token ends.
             */
            exp: string;
            /** @description The issuer's address. */
            iss: string;
            /** @description The gateway's address. */
            aud: string;
            /** @description Redis partition of the grant. */
            prt: number;
            /** @description The names of what restricts the URL and is not in its token, and `sockets` where it may be opened as a socket. Left out: nothing. */
            crt?: components["schemas"]["CriticalClaim"][];
            /** @constant */
            knd: "llm";
            /** @description The provider. */
            prv: string;
            /** @description The method of its calls. */
            mth: string;
            /** @description The paths of its calls. */
            pth: string[];
            /** @description The model to write into the path before it is matched, for providers that have the model there. */
            mdl?: string;
        };
        Warning: {
            code: components["schemas"]["WarningCode"];
            /** @description The field of the request. */
            param: string;
            message: string;
            /** @description Microdollars that the cheapest call needs. null: no call has a price. */
            needed: number | null;
        };
        /**
         * @description The code with which a gateway would refuse the calls.
         * @enum {string}
         */
        WarningCode: "cost_limit_too_low" | "price_unknown";
        /**
         * @example {
         *       "servers": [
         *         {
         *           "name": "docs",
         *           "url": "https://mcp.example.com/mcp",
         *           "transport": "http",
         *           "auth_type": "bearer",
         *           "auth_config": {
         *             "token": "your-token"
         *           },
         *           "pricing": {
         *             "default": 1000,
         *             "tools": {
         *               "search": 5000
         *             }
         *           }
         *         }
         *       ],
         *       "expires_in": 3600,
         *       "max_uses": 100,
         *       "cost_limit": 500000,
         *       "external_user": "user-42"
         *     }
         */
        McpPresignRequest: {
            /** @description 1 to 50 servers with different names. They share all limits. */
            servers: components["schemas"]["McpServerRequest"][];
            /**
             * @description Validity of the bundle in seconds.
             * @default 3600
             */
            expires_in?: number | null;
            /**
             * @description Microdollars that may be spent (1 dollar = 1000000). 0: only calls that cost nothing pass. Left out: unlimited.
             * @example 250000
             */
            cost_limit?: number | null;
            /**
             * @description How many calls may be made. -1, null: unlimited.
             * @default -1
             */
            max_uses?: number | null;
            /**
             * @description How many calls may be made in a minute, at once or spread over it. Left out: unlimited.
             * @example 60
             */
            calls_per_minute?: number | null;
            /**
             * @description How many calls may be made in 24 hours, at once or spread over them. Left out: unlimited.
             * @example 50
             */
            calls_per_day?: number | null;
            /**
             * @description How many calls may be under way at once. Left out: unlimited.
             * @example 10
             */
            concurrent_calls?: number | null;
            /**
             * @description The pages and addresses that may call the URL. Left out: all.
             * @example {
             *       "origins": [
             *         "https://app.example.com"
             *       ],
             *       "ip_ranges": [
             *         "192.0.2.0/24",
             *         "2001:db8::/32"
             *       ]
             *     }
             */
            bind?: components["schemas"]["BindRequest"] | null;
            /** @description Your own id of a session. Sessions can be filtered by it. */
            external_session?: string | null;
            /** @description Your own id of the user to be billed. Usage and sessions can be filtered by it. */
            external_user?: string | null;
            /** @description The session to join. It must belong to this account and not be revoked. An id that does not exist yet creates a session. Left out: a new session. */
            session_id?: string | null;
            /** @description Your own data, at most 65536 bytes of JSON. GET /v1/sessions/{id} returns it. */
            metadata?: components["schemas"]["Metadata"] | null;
        };
        /** bearer */
        BearerAuth: {
            /**
             * Format: password
             * @description Sent as "Authorization: Bearer …".
             */
            token: string;
            /** @description The scheme before the token. Left out: Bearer. */
            scheme?: string | null;
            /** @description Further headers for the server, at most 8. They are encrypted, too. */
            headers?: components["schemas"]["McpHeaders"] | null;
        };
        McpHeaders: {
            [key: string]: string;
        };
        /** api_key */
        ApiKeyAuth: {
            /**
             * Format: password
             * @description The key of the server.
             */
            key: string;
            /** @description The header that carries the key. Left out: X-API-Key, unless query is given. */
            header?: string | null;
            /** @description The query parameter that carries the key, instead of a header. */
            query?: string | null;
            /** @description Further headers for the server, at most 8. They are encrypted, too. */
            headers?: components["schemas"]["McpHeaders"] | null;
        };
        /** oauth */
        OAuth: {
            /** @description Used until it expires. Send it without the other fields. */
            access_token?: string | null;
            /** @description Where the gateway gets access tokens. Needs client_id, and client_secret or refresh_token. */
            token_url?: string | null;
            /** @description The id of the client at the token endpoint. */
            client_id?: string | null;
            /** @description The client's secret, if it has one. */
            client_secret?: string | null;
            /** @description Left out: client credentials are used. */
            refresh_token?: string | null;
            /** @description Scopes to ask for, separated by spaces. */
            scope?: string | null;
            /** @description The audience to ask for, if the token endpoint requires one. */
            audience?: string | null;
            /** @description The resource to ask for (RFC 8707). Left out: the URL of the server without its query. false: none is sent. */
            resource?: (false | string) | null;
            /** @description Further headers for the server, at most 8. They are encrypted, too. */
            headers?: components["schemas"]["McpHeaders"] | null;
        };
        /** none */
        NoAuth: Record<string, never>;
        ArgumentConditions: {
            [key: string]: components["schemas"]["ArgumentCondition"];
        };
        ArgumentCondition: {
            /** @description The argument is this value, of this type. */
            equals?: string | number | boolean | null;
            /** @description The argument is a string that begins with this text, character by character: a path with .. is not resolved. */
            prefix?: string;
        };
        ToolArguments: {
            [key: string]: components["schemas"]["ArgumentConditions"];
        };
        McpServerRequest: {
            /** @description The name of the server in the answer and in the bundle. */
            name: string;
            /** @description The address of the MCP server, as the gateway reaches it. */
            url: string;
            /**
             * @description http: Streamable HTTP. sse: the older HTTP with SSE.
             * @default sse
             */
            transport?: components["schemas"]["McpTransport"] | null;
            /**
             * @description How the gateway authenticates to the server.
             * @default none
             */
            auth_type?: components["schemas"]["McpAuthType"] | null;
            /** @description The fields of the auth_type. They are encrypted before they are stored. */
            auth_config?: components["schemas"]["NoAuth"] | components["schemas"]["BearerAuth"] | components["schemas"]["ApiKeyAuth"] | components["schemas"]["OAuth"] | null;
            /** @description The prices of this server's calls, in microdollars. */
            pricing?: components["schemas"]["McpPricing"] | null;
            /** @description The tools that may be called and that tools/list shows, at most 500. Left out: all. */
            tools?: string[] | null;
            /**
             * @description The values that arguments of a tool must have, by the name of the tool and the name of the argument. A call without the argument is refused. Tools that are not named take any arguments.
             * @example {
             *       "read_file": {
             *         "path": {
             *           "prefix": "docs/"
             *         }
             *       }
             *     }
             */
            arguments?: components["schemas"]["ToolArguments"] | null;
        };
        /** @enum {string} */
        McpTransport: "sse" | "http";
        /** @enum {string} */
        McpAuthType: "none" | "bearer" | "api_key" | "oauth";
        ToolPrices: {
            [key: string]: number;
        };
        McpPricing: {
            /** @description Microdollars of a call without its own price. Left out: the price that the operator set. */
            default?: number | null;
            /** @description Microdollars by the name of a tool. */
            tools?: components["schemas"]["ToolPrices"] | null;
        };
        /**
         * @example {
         *       "bundle_url": "https://gateway.example.com/mcp/bundle/v4.public.eyJ...",
         *       "bundle_token": "v4.public.eyJ...",
         *       "expires_at": 1767225600,
         *       "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
         *       "servers": {
         *         "docs": {
         *           "url": "https://gateway.example.com/mcp/mcp?url=https%3A%2F%2Fmcp.example.com%2Fmcp&token=v4.public.eyJ...",
         *           "transport": "http"
         *         }
         *       },
         *       "grant_id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
         *       "claims": {
         *         "jti": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
         *         "sub": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
         *         "iat": "2025-12-31T23:00:00.000Z",
         *         "exp": "2026-01-01T00:00:00.000Z",
         *         "iss": "https://presign.example.com",
         *         "aud": "https://gateway.example.com",
         *         "prt": 17,
         *         "knd": "mcp_bundle"
         *       }
         *     }
         */
        McpPresignAnswer: {
            /**
             * Format: uri
             * @description Returns an MCP client's configuration with all servers.
             */
            bundle_url: string;
            /** @description The last part of bundle_url. */
            bundle_token: string;
            /**
             * @description Unix time in seconds. The URL is refused from then on.
             * @example 1767225600
             */
            expires_at: number;
            /** Format: uuid */
            session_id: string;
            /** @description The servers by their names in the request. */
            servers: {
                [key: string]: components["schemas"]["McpServerUrl"];
            };
            /**
             * Format: uuid
             * @description The id of its grant, for `/v1/grants/{id}`.
             */
            grant_id: string;
            /** @description The claims that bundle_token carries. */
            claims: components["schemas"]["McpBundleClaims"];
            /** @description Under its `cost_limit` no call of this URL can pass. It is issued all the same, unless the policy of the API key has `refuse_warnings`. */
            warnings?: components["schemas"]["Warning"][];
        };
        McpServerUrl: {
            /** Format: uri */
            url: string;
            transport: components["schemas"]["McpTransport"];
        };
        McpBundleClaims: {
            /**
             * Format: uuid
             * @description Grant id.
             */
            jti: string;
            /**
             * Format: uuid
             * @description Session id.
             */
            sub: string;
            /**
             * Format: date-time
             * @description When it was issued.
             */
            iat: string;
            /**
             * Format: date-time
             * @description When the token ends.
             */
            exp: string;
            /** @description The issuer's address. */
            iss: string;
            /** @description The gateway's address. */
            aud: string;
            /** @description Redis partition of the grant. */
            prt: number;
            /** @description The names of what restricts the URL and is not in its token, and `sockets` where it may be opened as a socket. Left out: nothing. */
            crt?: components["schemas"]["CriticalClaim"][];
            /** @constant */
            knd: "mcp_bundle";
        };
        /** @enum {string} */
        SessionStatus: "active" | "ended";
        SessionPage: {
            /** @description Newest first. */
            data: components["schemas"]["SessionSummary"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        SessionSummary: {
            /** Format: uuid */
            id: string;
            /** @description Your name for it. null: it has no name. */
            name: string | null;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description null: the session itself was not revoked. */
            revoked_at: number | null;
            /** @description Active while one of its grants is active by the figures of the ledger. */
            status: components["schemas"]["SessionStatus"];
            /** @description How many grants it has. */
            grant_count: number;
            /** @description When the last of its grants expires. */
            expires_at: number | null;
            /** @description The ids that its grants were issued with. */
            external_sessions: string[];
            /** @description The ids that its grants were issued with. */
            external_users: string[];
            /** @description 1. Every `PATCH` of it that changes something adds 1. */
            revision: number;
        };
        /**
         * @description The change is stored, and Presign applies it as soon as Redis answers.
         * @example {
         *       "status": "pending"
         *     }
         */
        Pending: {
            /** @constant */
            status: "pending";
        };
        Session: {
            /** Format: uuid */
            id: string;
            /** @description Your name for it. null: it has no name. */
            name: string | null;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description null: the session itself was not revoked. */
            revoked_at: number | null;
            /** @description Active while one of its grants is active by the figures of the ledger. */
            status: components["schemas"]["SessionStatus"];
            /** @description How many grants it has. */
            grant_count: number;
            /** @description When the last of its grants expires. */
            expires_at: number | null;
            /** @description The ids that its grants were issued with. */
            external_sessions: string[];
            /** @description The ids that its grants were issued with. */
            external_users: string[];
            /** @description 1. Every `PATCH` of it that changes something adds 1. */
            revision: number;
            /** @description The session's own, which `PATCH` sets. Each grant has the metadata of its issue. */
            metadata: components["schemas"]["Metadata"] | null;
            /** @description Newest first. */
            grants: components["schemas"]["SessionGrant"][];
            /** @description The cursor of the next page of grants. null: this is the last page. */
            next_cursor: string | null;
        };
        SessionGrant: {
            /** Format: uuid */
            id: string;
            kind: components["schemas"]["GrantKind"];
            /** @description `mcp` for MCP grants. */
            provider: string;
            /** @description LLM grants only. */
            method: string | null;
            /** @description LLM grants only. */
            paths: string[] | null;
            /** @description LLM grants only: the models that calls may use. null: all. */
            models: string[] | null;
            /** @description Grants of MCP servers only: the server of the request. */
            server: components["schemas"]["McpServer"] | null;
            /** @description Grants of MCP servers only: the grant of the bundle. */
            bundle_id: string | null;
            external_session: string | null;
            external_user: string | null;
            /** @description Id of the virtual key that it was issued with. null: it was issued with client_api_key. */
            virtual_key: string | null;
            /** @description Id of the API key that issued it. null: it was issued before Presign recorded this. */
            api_key: string | null;
            /** @description As issued. A bundle's metadata is at the bundle's own grant. */
            metadata: components["schemas"]["Metadata"] | null;
            /** @description Unix time in whole seconds. */
            issued_at: number;
            /** @description Unix time in whole seconds. */
            expires_at: number;
            status: components["schemas"]["GrantStatus"];
            /** @description Microdollars. null: no limit. */
            cost_limit: number | null;
            /** @description null: no limit. */
            max_uses: number | null;
            /** @description null: no limit. */
            calls_per_minute: number | null;
            /** @description null: no limit. */
            calls_per_day: number | null;
            /** @description null: no limit. */
            concurrent_calls: number | null;
            /** @description null: no limit. */
            tokens_per_minute: number | null;
            /** @description Those that it was issued with. null: none. */
            conditions: components["schemas"]["Conditions"] | null;
            /** @description Ids of the budgets that its calls draw on, too. They were chosen when it was issued. */
            shared_budgets: string[];
            /** @description 1. Every change adds 1. The grants of a bundle share it. */
            revision: number;
            settled: components["schemas"]["Settled"];
            /** @description Now, running calls included. null: Redis does not answer. */
            live: components["schemas"]["LiveFigures"] | null;
        };
        /** @enum {string} */
        GrantKind: "llm" | "mcp" | "mcp_bundle";
        McpServer: {
            name: string;
            url: string;
            transport: components["schemas"]["McpTransport"];
            /** @description null: all. */
            tools: string[] | null;
            /** @description null: any. */
            arguments: components["schemas"]["StoredArguments"] | null;
        };
        StoredArguments: {
            [key: string]: components["schemas"]["StoredConditions"];
        };
        StoredConditions: {
            [key: string]: components["schemas"]["ArgumentCondition"];
        };
        /** @enum {string} */
        GrantStatus: "active" | "exhausted" | "expired" | "revoked";
        Conditions: {
            max_body_bytes?: number;
            allowed_fields?: string[];
            bind?: components["schemas"]["Bind"];
            /** @constant */
            sockets?: true;
        };
        Bind: {
            origins?: string[];
            ip_ranges?: string[];
        };
        /** @description Uses and microdollars in the ledger. */
        Settled: {
            /** @description Calls. */
            used: number;
            /** @description Microdollars. */
            spent: number;
        };
        LiveFigures: {
            /** @description Calls. */
            used: number;
            /** @description Microdollars. */
            spent: number;
            /** @description Microdollars held for running calls. */
            held: number;
        };
        /**
         * @example {
         *       "name": "chat of user 42",
         *       "grants": {
         *         "max_uses": 500
         *       }
         *     }
         */
        SessionChange: {
            /** @description Your name for it. null: none. */
            name?: string | null;
            /** @description Replaces all of the session's own metadata. null: none. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description The change of each of its live URLs and bundles, at most 100, as `PATCH /v1/grants/{id}` takes it. All of them are changed, or none. A limit is that of each URL, not of all together. */
            grants?: components["schemas"]["GrantChange"];
        };
        /**
         * @example {
         *       "cost_limit": 10000000,
         *       "max_uses": 500
         *     }
         */
        GrantChange: {
            /** @description Microdollars over all its calls, those that it has had included. null: no limit. */
            cost_limit?: number | null;
            /** @description All its calls, those that it has had included. null, -1: unlimited. 0: no call passes. */
            max_uses?: number | null;
            /** @description null: no limit. */
            calls_per_minute?: number | null;
            /** @description null: no limit. */
            calls_per_day?: number | null;
            /** @description null: no limit. */
            concurrent_calls?: number | null;
            /** @description null: no limit. */
            tokens_per_minute?: number | null;
            /** @description When it ends, in Unix seconds. A later end than its token has gives it a new URL; the old one ends when it says. */
            expires_at?: number;
            /** @description Replaces all metadata. null: none. */
            metadata?: components["schemas"]["Metadata"] | null;
        };
        ChangedSession: {
            /** Format: uuid */
            id: string;
            /** @description Your name for it. null: it has no name. */
            name?: string | null;
            /** @description Unix time in whole seconds. */
            created_at?: number;
            /** @description null: the session itself was not revoked. */
            revoked_at?: number | null;
            /** @description Active while one of its grants is active by the figures of the ledger. */
            status?: components["schemas"]["SessionStatus"];
            /** @description How many grants it has. */
            grant_count?: number;
            /** @description When the last of its grants expires. */
            expires_at?: number | null;
            /** @description The ids that its grants were issued with. */
            external_sessions?: string[];
            /** @description The ids that its grants were issued with. */
            external_users?: string[];
            /** @description 1. Every `PATCH` of it that changes something adds 1. */
            revision: number;
            /** @description The session's own, which `PATCH` sets. Each grant has the metadata of its issue. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description The live URLs and bundles that `grants` was for. */
            changed: components["schemas"]["ChangedUrl"][];
        };
        ChangedUrl: {
            /** Format: uuid */
            id: string;
            /** @description The URL that lasts until expires_at, if that is the end of its token. null: the URL stays, or another API key issued it and the one that asks has a policy. */
            url: string | null;
        };
        GrantPage: {
            /** @description Newest first. */
            data: components["schemas"]["Grant"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        Grant: {
            /** Format: uuid */
            id: string;
            kind: components["schemas"]["GrantKind"];
            /** @description `mcp` for MCP grants. */
            provider: string;
            /** @description LLM grants only. */
            method: string | null;
            /** @description LLM grants only. */
            paths: string[] | null;
            /** @description LLM grants only: the models that calls may use. null: all. */
            models: string[] | null;
            /** @description Grants of MCP servers only: the server of the request. */
            server: components["schemas"]["McpServer"] | null;
            /** @description Grants of MCP servers only: the grant of the bundle. */
            bundle_id: string | null;
            external_session: string | null;
            external_user: string | null;
            /** @description Id of the virtual key that it was issued with. null: it was issued with client_api_key. */
            virtual_key: string | null;
            /** @description Id of the API key that issued it. null: it was issued before Presign recorded this. */
            api_key: string | null;
            /** @description As issued. A bundle's metadata is at the bundle's own grant. */
            metadata: components["schemas"]["Metadata"] | null;
            /** @description Unix time in whole seconds. */
            issued_at: number;
            /** @description Unix time in whole seconds. */
            expires_at: number;
            status: components["schemas"]["GrantStatus"];
            /** @description Microdollars. null: no limit. */
            cost_limit: number | null;
            /** @description null: no limit. */
            max_uses: number | null;
            /** @description null: no limit. */
            calls_per_minute: number | null;
            /** @description null: no limit. */
            calls_per_day: number | null;
            /** @description null: no limit. */
            concurrent_calls: number | null;
            /** @description null: no limit. */
            tokens_per_minute: number | null;
            /** @description Those that it was issued with. null: none. */
            conditions: components["schemas"]["Conditions"] | null;
            /** @description Ids of the budgets that its calls draw on, too. They were chosen when it was issued. */
            shared_budgets: string[];
            /** @description 1. Every change adds 1. The grants of a bundle share it. */
            revision: number;
            settled: components["schemas"]["Settled"];
            /** @description Now, running calls included. null: Redis does not answer. */
            live: components["schemas"]["LiveFigures"] | null;
            /** Format: uuid */
            session_id: string;
            /** @description The name of its session. null: it has none. */
            session_name: string | null;
        };
        ChangedGrant: {
            /** Format: uuid */
            id: string;
            kind?: components["schemas"]["GrantKind"];
            /** @description `mcp` for MCP grants. */
            provider?: string;
            /** @description LLM grants only. */
            method?: string | null;
            /** @description LLM grants only. */
            paths?: string[] | null;
            /** @description LLM grants only: the models that calls may use. null: all. */
            models?: string[] | null;
            /** @description Grants of MCP servers only: the server of the request. */
            server?: components["schemas"]["McpServer"] | null;
            /** @description Grants of MCP servers only: the grant of the bundle. */
            bundle_id?: string | null;
            external_session?: string | null;
            external_user?: string | null;
            /** @description Id of the virtual key that it was issued with. null: it was issued with client_api_key. */
            virtual_key?: string | null;
            /** @description Id of the API key that issued it. null: it was issued before Presign recorded this. */
            api_key?: string | null;
            /** @description As issued. A bundle's metadata is at the bundle's own grant. */
            metadata?: components["schemas"]["Metadata"] | null;
            /** @description Unix time in whole seconds. */
            issued_at?: number;
            /** @description Unix time in whole seconds. */
            expires_at: number;
            status?: components["schemas"]["GrantStatus"];
            /** @description Microdollars. null: no limit. */
            cost_limit?: number | null;
            /** @description null: no limit. */
            max_uses?: number | null;
            /** @description null: no limit. */
            calls_per_minute?: number | null;
            /** @description null: no limit. */
            calls_per_day?: number | null;
            /** @description null: no limit. */
            concurrent_calls?: number | null;
            /** @description null: no limit. */
            tokens_per_minute?: number | null;
            /** @description Those that it was issued with. null: none. */
            conditions?: components["schemas"]["Conditions"] | null;
            /** @description Ids of the budgets that its calls draw on, too. They were chosen when it was issued. */
            shared_budgets?: string[];
            /** @description 1. Every change adds 1. The grants of a bundle share it. */
            revision: number;
            settled?: components["schemas"]["Settled"];
            /** @description Now, running calls included. null: Redis does not answer. */
            live?: components["schemas"]["LiveFigures"] | null;
            /** Format: uuid */
            session_id: string;
            /** @description The name of its session. null: it has none. */
            session_name?: string | null;
            /** @description The URL that lasts until expires_at, if that is the end of its token. null: the URL stays, or another API key issued it and the one that asks has a policy. */
            url: string | null;
        };
        /** @enum {string} */
        LedgerOutcome: "passed" | "provider_error" | "provider_refused" | "provider_unreachable" | "provider_timeout" | "answer_broken" | "holder_left" | "cut" | "credential_refused" | "gateway_error" | "lease_ended" | "under_way" | "refunded";
        UsageReport: {
            /** @description Calls settled at this time or later, in seconds, exact. */
            from: number;
            /** @description Calls settled before this time, in seconds, exact: the next report begins here. */
            to: number;
            group_by: components["schemas"]["UsageDimension"][];
            /** @description The cursor of the next groups. null: these are the last, or the answer to `top`. CSV has it in the header `Link`. */
            next_cursor: string | null;
            /** @description The groups of the whole range, the same on every page. */
            groups: number;
            /** @description A row has the dimensions of group_by. null: these calls have no value. */
            data: components["schemas"]["UsageRow"][];
            /** @description The sums of the whole range, the same on every page. */
            total: components["schemas"]["UsageSums"];
        };
        UsageDimension: components["schemas"]["UsageField"] | `metadata.${string}`;
        /** @enum {string} */
        UsageField: "external_user" | "session_id" | "model" | "provider" | "virtual_key" | "api_key" | "server" | "tool" | "outcome" | "day" | "month";
        UsageRow: {
            external_user?: string | null;
            /** Format: uuid */
            session_id?: string;
            model?: string | null;
            provider?: string;
            virtual_key?: string | null;
            api_key?: string | null;
            server?: string | null;
            tool?: string | null;
            /** @description How the calls ended, as in a call. null: not recorded. */
            outcome?: string | null;
            /** @description In `timezone`, `2026-01-31`. */
            day?: string;
            /** @description In `timezone`, `2026-01`. */
            month?: string;
            /** @description By key, for each `metadata.<key>` of `group_by`. */
            metadata?: {
                [key: string]: string | null;
            };
            /** @description Calls that gateways admitted. They may have failed later. */
            calls: number;
            /** @description Uses that they took from their limits. */
            uses: number;
            /** @description Microdollars of the calls whose cost is known. */
            cost: number;
            /** @description Those of them that failed, whatever the cause: `outcome` has it. */
            failed_calls: number;
            calls_of_unknown_cost: number;
            /** @description As providers reported them. */
            input_tokens: number;
            /** @description As providers reported them. */
            output_tokens: number;
        };
        UsageSums: {
            /** @description Calls that gateways admitted. They may have failed later. */
            calls: number;
            /** @description Uses that they took from their limits. */
            uses: number;
            /** @description Microdollars of the calls whose cost is known. */
            cost: number;
            /** @description Those of them that failed, whatever the cause: `outcome` has it. */
            failed_calls: number;
            calls_of_unknown_cost: number;
            /** @description As providers reported them. */
            input_tokens: number;
            /** @description As providers reported them. */
            output_tokens: number;
        };
        /** @enum {string} */
        HourDimension: "provider" | "model" | "server";
        UsageHours: {
            /** @description Unix time in whole seconds. */
            from: number;
            /** @description Unix time in whole seconds. */
            to: number;
            /** @description By hour, then by the dimensions of group_by. Hours without a call are left out. */
            data: components["schemas"]["UsageHour"][];
        };
        UsageHour: {
            /** @description When the hour began, in Unix seconds. */
            hour: number;
            provider?: string;
            model?: string | null;
            server?: string | null;
            /** @description Calls that ended in it. */
            calls: number;
            /** @description Those of them that failed, whatever the cause. */
            failed_calls: number;
            /** @description The part of the calls that failed by the fault of the provider or of Presign, from 0 to 1. */
            error_rate: number;
            /** @description How many calls ended how. */
            outcomes: components["schemas"]["CallsByOutcome"];
            total_ms: components["schemas"]["Percentiles"];
            first_byte_ms: components["schemas"]["Percentiles"];
        };
        CallsByOutcome: {
            [key: string]: number;
        };
        /** @description Milliseconds, at most 9 % off. null: no call has this time. */
        Percentiles: {
            p50: number | null;
            p95: number | null;
        };
        Refusals: {
            /** @description The first day, in UTC: `2026-01-31`. */
            from: string;
            /** @description The present day, in UTC. */
            to: string;
            /** @description By day, then by code. Days and codes without a refusal are left out. */
            data: components["schemas"]["RefusalCount"][];
        };
        RefusalCount: {
            /** @description In UTC, `2026-01-31`. */
            day: string;
            /** @description The code of the error that the holder got. */
            code: string;
            /** @description How many calls were refused with it. */
            calls: number;
            /** @description The fields, kinds and models for which no bound or price is known, with how many of these calls each, the most first. `other`: calls whose names are too many or too long. Empty with other codes. */
            names: components["schemas"]["RefusedName"][];
        };
        RefusedName: {
            name: string;
            calls: number;
        };
        /** @enum {string} */
        OutcomeFilter: "passed" | "provider_error" | "provider_refused" | "provider_unreachable" | "provider_timeout" | "answer_broken" | "holder_left" | "cut" | "credential_refused" | "gateway_error" | "lease_ended" | "under_way" | "refunded" | "failed" | "refused" | "all";
        CallPage: {
            /** @description Newest first. */
            data: components["schemas"]["Call"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        Call: {
            /** @description The `x-presign-request-id` of the answer. */
            request_id: string | null;
            /** @description Unix time in whole seconds. */
            started_at: number;
            /** @description Unix time in whole seconds. */
            settled_at: number;
            outcome: components["schemas"]["Outcome"];
            /** @description How it failed, in one word more exact than `outcome`: an error code, `provider_error`, `answer_broken`, `holder_left` or `lease_ended`. null: it did not. */
            failure: string | null;
            /** @description The provider's status, or that of a refusal. null: the provider gave no answer, or it is an MCP call under way. */
            status: number | null;
            /** @description From the call's arrival to the first byte of the provider's answer. null: there was none. */
            first_byte_ms: number | null;
            /** @description The time that Presign took of it: without its body on the way, and without the provider. null: not recorded. */
            own_ms: number | null;
            /** @description From the call's arrival to the end of its answer. null: not recorded. */
            total_ms: number | null;
            /** @description Which repetition it was, as the SDK stated it in `X-Stainless-Retry-Count`: 0 is the first try. null: not stated. */
            retry_count: number | null;
            /** @description The first 64 characters of the header. null: it had none. */
            user_agent: string | null;
            /** @description The socket that it is a turn of: the `x-presign-request-id` of its handshake. null: it had a request of its own. */
            connection: string | null;
            /** @description Its number on that socket, from 1. */
            turn: number | null;
            /** Format: uuid */
            session_id: string;
            /** Format: uuid */
            grant_id: string;
            api_key: string | null;
            virtual_key: string | null;
            external_user: string | null;
            /** @description Values of the keys of `USAGE_METADATA` that its URL had. null: none. */
            metadata: components["schemas"]["CallMetadata"] | null;
            provider: string;
            model: string | null;
            /** @description MCP: the name of the server. */
            server: string | null;
            /** @description MCP: the tool or method. */
            tool: string | null;
            uses: number;
            /** @description As the provider reported them. null: it did not. */
            input_tokens: number | null;
            /** @description As the provider reported them. null: it did not. */
            output_tokens: number | null;
            /** @description Microdollars that were held while it ran. null: nothing was held. */
            hold: number | null;
            /** @description Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it. */
            cost: number | null;
            /** @description Microdollars beyond the hold, which no limit was charged. */
            overrun: number;
            /** @description The list that priced it, as `GET /v1/models` names it. null: no list. */
            price_list: components["schemas"]["PriceListOfCall"] | null;
            /** @description The version of what was known of the provider when it was bounded, as `/readyz` names it: `source:id`. null for MCP. */
            knowledge: string | null;
            /** @description How it was refused. null: it was not. */
            refusal: components["schemas"]["RefusalOfCall"] | null;
        };
        /**
         * @description `passed`: the holder got a whole answer below 400. `provider_error`: the provider answered 500 or more. `provider_refused`: the provider answered 400 to 499. `provider_unreachable`: no connection, or no answer before it ended. `provider_timeout`: the provider did not answer in time. `answer_broken`: the provider ended its answer before it was whole. `holder_left`: the holder did not wait for the end of its answer. `cut`: the URL ended while the call ran: it was revoked or suspended, or it expired. `credential_refused`: the provider refused the credential of the URL, or its credential could not be used. `gateway_error`: the gateway could not send it: a fault of its own, Redis, or its end. `lease_ended`: its gateway died, and its hold was charged. `under_way`: an MCP call whose end is not recorded: it runs, or its gateway died. `refunded`: a row that returns the charge of an MCP call that surely did not run. `refused`: the gateway refused it, and it cost nothing.
         * @enum {string}
         */
        Outcome: "passed" | "provider_error" | "provider_refused" | "provider_unreachable" | "provider_timeout" | "answer_broken" | "holder_left" | "cut" | "credential_refused" | "gateway_error" | "lease_ended" | "under_way" | "refunded" | "refused";
        CallMetadata: {
            [key: string]: string;
        };
        PriceListOfCall: {
            source: string;
            id: string;
        };
        RefusalOfCall: {
            /** @description The code of the error that the holder got. */
            code: string;
            /** @description Says more than the code, as in the log. null: it says it all. */
            reason: string | null;
            /** @description The field, kind or model for which no bound or price is known. */
            name: string | null;
            /** @description Whose limit refused it. null: no such limit did. */
            limit_of: components["schemas"]["LimitOwner"] | null;
            /** @description The id of the shared budget, if it is of one. */
            budget: string | null;
            /** @description The limit: microdollars for money, else uses, tokens or calls. */
            limit: number | null;
            /** @description How much of it was used, in the same unit. */
            used: number | null;
            /** @description How much the call needed. */
            needed: number | null;
            /** @description How much was left. */
            remaining: number | null;
            /** @description The length of its body. null: the holder did not state it. */
            body_bytes: number | null;
        };
        /** @enum {string} */
        LimitOwner: "url" | "virtual_key" | "budget";
        CallWithRefunds: {
            /** @description The `x-presign-request-id` of the answer. */
            request_id: string | null;
            /** @description Unix time in whole seconds. */
            started_at: number;
            /** @description Unix time in whole seconds. */
            settled_at: number;
            outcome: components["schemas"]["Outcome"];
            /** @description How it failed, in one word more exact than `outcome`: an error code, `provider_error`, `answer_broken`, `holder_left` or `lease_ended`. null: it did not. */
            failure: string | null;
            /** @description The provider's status, or that of a refusal. null: the provider gave no answer, or it is an MCP call under way. */
            status: number | null;
            /** @description From the call's arrival to the first byte of the provider's answer. null: there was none. */
            first_byte_ms: number | null;
            /** @description The time that Presign took of it: without its body on the way, and without the provider. null: not recorded. */
            own_ms: number | null;
            /** @description From the call's arrival to the end of its answer. null: not recorded. */
            total_ms: number | null;
            /** @description Which repetition it was, as the SDK stated it in `X-Stainless-Retry-Count`: 0 is the first try. null: not stated. */
            retry_count: number | null;
            /** @description The first 64 characters of the header. null: it had none. */
            user_agent: string | null;
            /** @description The socket that it is a turn of: the `x-presign-request-id` of its handshake. null: it had a request of its own. */
            connection: string | null;
            /** @description Its number on that socket, from 1. */
            turn: number | null;
            /** Format: uuid */
            session_id: string;
            /** Format: uuid */
            grant_id: string;
            api_key: string | null;
            virtual_key: string | null;
            external_user: string | null;
            /** @description Values of the keys of `USAGE_METADATA` that its URL had. null: none. */
            metadata: components["schemas"]["CallMetadata"] | null;
            provider: string;
            model: string | null;
            /** @description MCP: the name of the server. */
            server: string | null;
            /** @description MCP: the tool or method. */
            tool: string | null;
            uses: number;
            /** @description As the provider reported them. null: it did not. */
            input_tokens: number | null;
            /** @description As the provider reported them. null: it did not. */
            output_tokens: number | null;
            /** @description Microdollars that were held while it ran. null: nothing was held. */
            hold: number | null;
            /** @description Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it. */
            cost: number | null;
            /** @description Microdollars beyond the hold, which no limit was charged. */
            overrun: number;
            /** @description The list that priced it, as `GET /v1/models` names it. null: no list. */
            price_list: components["schemas"]["PriceListOfCall"] | null;
            /** @description The version of what was known of the provider when it was bounded, as `/readyz` names it: `source:id`. null for MCP. */
            knowledge: string | null;
            /** @description How it was refused. null: it was not. */
            refusal: components["schemas"]["RefusalOfCall"] | null;
            /** @description How the cost follows from the usage. Their sum, rounded up once, is `cost` + `overrun`. null: the cost does not follow from a usage (a call that the provider refused, or one that is charged its hold), the usage contradicts itself, it is a batch of MCP calls of more than 20 prices, or a gateway before this field served it. */
            price_lines: components["schemas"]["PriceLine"][] | null;
            /** @description Its refunds, oldest first. */
            refunds: components["schemas"]["Refund"][];
        };
        PriceLine: {
            /** @description Tokens of one kind without those of other lines (`input_tokens`, `cache_read_tokens`, …), another unit that is billed (`web_searches`), `calls` of MCP tools, or `other` for roundings and rules of the price list that are no rate. */
            unit: string;
            count: number;
            /** @description Microdollars for a million tokens, or for each of another unit. */
            rate: number;
        };
        Refund: {
            /** @description Unix time in whole seconds. */
            settled_at: number;
            uses: number;
            /** @description Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it. */
            cost: number | null;
        };
        SimilarCalls: {
            /** @description Newest first, without the call itself; at most the 100 newest. */
            data: components["schemas"]["Call"][];
        };
        /** @enum {string} */
        SearchKind: "external_user" | "session";
        SearchAnswer: {
            /** @description Users first: those whose names begin with the text, then the others by name. Then sessions, newest first. */
            data: components["schemas"]["Named"][];
            /** @description false: there may be more names that have this part. */
            complete: boolean;
        };
        Named: {
            kind: components["schemas"]["SearchKind"];
            /** @description The id of a session. A user has its name as its id. */
            id: string;
            name: string;
        };
        /** @enum {string} */
        AuditAction: "account.created" | "account.changed" | "account.suspended" | "account.resumed" | "account.deleted" | "api_key.created" | "api_key.changed" | "api_key.revoked" | "virtual_key.created" | "virtual_key.changed" | "virtual_key.rotated" | "virtual_key.deleted" | "webhook.created" | "webhook.changed" | "webhook.deleted" | "webhook.secret_rotated" | "webhook.enabled" | "webhook.tested" | "delivery.replayed" | "grant.changed" | "session.changed" | "budget.created" | "budget.changed" | "budget.deleted" | "alert.created" | "alert.changed" | "alert.deleted" | "alert.tested" | "urls.revoked" | "console.signed_in";
        /** @enum {string} */
        AuditTargetKind: "account" | "api_key" | "virtual_key" | "webhook" | "delivery" | "grant" | "session" | "external_user" | "external_session" | "budget" | "alert";
        AuditPage: {
            /** @description Newest first. */
            data: components["schemas"]["AuditEntry"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        AuditEntry: {
            /** Format: uuid */
            id: string;
            /** @description Unix time in whole seconds. */
            at: number;
            /** @description The one who made the change: the id of an API key, `cli` for the command line, or `issuer` for the key of `BOOTSTRAP_API_KEY`. */
            actor: string;
            action: components["schemas"]["AuditAction"];
            target: components["schemas"]["AuditTarget"];
            /** @description The `x-request-id` of the answer. null: it was no request. */
            request_id: string | null;
            /** @description The other end of the issuer's connection: the address of the proxy if there is one. null: it was no request. */
            remote_address: string | null;
            /** @description The changed fields as they were. null: there was nothing before, or the API key lacks the scope that reads such a target. */
            before: components["schemas"]["AuditState"] | null;
            /** @description The changed fields as they are since. null: nothing is left, or the API key lacks the scope that reads such a target. */
            after: components["schemas"]["AuditState"] | null;
        };
        AuditTarget: {
            kind: components["schemas"]["AuditTargetKind"];
            id: string;
        };
        AuditState: {
            [key: string]: unknown;
        };
        Models: {
            /** @description The lists in use. The first that prices a model decides. */
            lists: components["schemas"]["PriceList"][];
            data: components["schemas"]["PricedModel"][];
        };
        PriceList: {
            source: components["schemas"]["PriceSource"];
            /** @description Changes with the content of the list. */
            id: string;
            /** @description The day of the bundled list's release, or on which the operator's list was first read. */
            date: string;
            /** @description The list has large drops that wait for the operator. Until then its prices count only where they are higher. */
            waits: boolean;
        };
        /**
         * @description `providers_file`: `PROVIDERS_FILE`. `file`, `url`: the list of `PRICES_FILE` or `PRICES_URL`. `bundled`: the list that ships with Presign.
         * @enum {string}
         */
        PriceSource: "providers_file" | "file" | "url" | "bundled";
        PricedModel: {
            provider: string;
            model: string;
            source: components["schemas"]["PriceSource"];
            /** @description The date of the list. null: `PROVIDERS_FILE`, which has none. */
            date: string | null;
            rates: components["schemas"]["Rates"];
        };
        /** @description The highest rate of each unit over all tiers and the next 24 hours, by which calls are held: microdollars for a million tokens, or for one of any other unit. */
        Rates: {
            [key: string]: number;
        };
        Limits: {
            api_key: components["schemas"]["ApiKeyOfRequest"];
            account: components["schemas"]["AccountLimits"];
            /** @description The name of the account of the API key. */
            account_name: string;
            /** @description The keys of `metadata` by which usage is summed: `USAGE_METADATA` of the operator. */
            usage_metadata: string[];
            /** @description `POST /v1/presign` with this API key. null: it may not issue such URLs. */
            presign: components["schemas"]["PresignLimits"] | null;
            /** @description `POST /v2/mcp-presign` with this API key. null: it may not issue bundles. */
            mcp_presign: components["schemas"]["McpPresignLimits"] | null;
            requests: components["schemas"]["RequestLimits"];
        };
        /** @description The API key of the request. */
        ApiKeyOfRequest: {
            /** Format: uuid */
            id: string;
            name: string;
            scopes: components["schemas"]["Scope"][];
            /** @description Unix time in whole seconds; null: never. */
            expires_at: number | null;
            /** @description Requests that it may make in a minute. */
            requests_per_minute: number;
            /** @description The URLs that it may issue. null: all. */
            policy: components["schemas"]["KeyPolicy"] | null;
        };
        /** @enum {string} */
        Scope: "presign" | "read" | "admin" | "operator";
        KeyPolicy: {
            /** @description The providers. mcp stands for MCP servers. */
            providers?: string[];
            /** @description Each path of a URL must be one of these, or match one in which * stands for any characters except /. */
            paths?: string[];
            /** @description The models. The gateway refuses every other model on each URL of the key. */
            models?: string[];
            /** @description The max_body_bytes of each URL of an LLM provider. A request can only lower it. */
            max_body_bytes?: number;
            /** @description The top-level fields of the bodies of each URL of an LLM provider, in addition to those of config. A request can only leave some out, and its config can set no other field. */
            allowed_fields?: string[];
            bind?: components["schemas"]["Bind"];
            /** @description false: no URL can be opened as a WebSocket. true: each URL of an LLM provider must be issued with `sockets`. */
            sockets?: boolean;
            /** @description A URL must use one of these virtual keys of the account, so client_api_key is refused. */
            virtual_keys?: string[];
            /** @description The hosts of MCP servers, with the port if it is not the default of the scheme. */
            mcp_hosts?: string[];
            /** @description Limits that each URL must have, of any size. */
            required?: components["schemas"]["LimitName"][];
            /** @description Set in each URL. Neither the request nor its virtual key can change these settings. */
            config?: components["schemas"]["CallConfig"];
            /** @description true: a URL that would be issued with `warnings` is refused with 400 instead. */
            refuse_warnings?: boolean;
            /** @description The external_user of each URL. */
            external_user?: string;
            highest?: components["schemas"]["HighestLimits"];
        };
        /** @enum {string} */
        LimitName: "cost_limit" | "max_uses" | "calls_per_minute" | "calls_per_day" | "concurrent_calls" | "tokens_per_minute";
        HighestLimits: {
            /** @description Microdollars. A URL must have a cost_limit. */
            cost_limit?: number;
            /** @description Calls. A URL must have a max_uses. */
            max_uses?: number;
            /** @description A URL must have a calls_per_minute. */
            calls_per_minute?: number;
            /** @description A URL must have a calls_per_day. */
            calls_per_day?: number;
            /** @description A URL must have a concurrent_calls. */
            concurrent_calls?: number;
            /** @description A URL of an LLM provider must have a tokens_per_minute. */
            tokens_per_minute?: number;
            /** @description Seconds. A request without expires_in gets one hour, or this if it is shorter. */
            expires_in?: number;
        };
        /** @description The most that the account may have. null: no limit. */
        AccountLimits: {
            /** @description API keys that are neither revoked nor expired. */
            api_keys: number | null;
            /** @description Sessions with a URL that has neither expired nor been revoked. */
            sessions: number | null;
            /** @description URLs and bundles that its API keys issue in a minute. */
            urls_per_minute: number | null;
            /** @description The highest cost_limit of a URL or a bundle, in microdollars. Each must then have one. */
            cost_limit: number | null;
        };
        PresignLimits: {
            /** @description Seconds. */
            expires_in: components["schemas"]["LimitRange"];
            /** @description Microdollars. */
            cost_limit: components["schemas"]["LimitRange"];
            /** @description Calls. */
            max_uses: components["schemas"]["LimitRange"];
            calls_per_minute: components["schemas"]["LimitRange"];
            calls_per_day: components["schemas"]["LimitRange"];
            concurrent_calls: components["schemas"]["LimitRange"];
            tokens_per_minute: components["schemas"]["LimitRange"];
            /** @description Paths of a URL. */
            paths: number;
            /** @description Bytes of all paths together. */
            path_bytes: number;
            /** @description Entries of `models`. */
            models: number;
            /** @description Bytes of `config` as JSON. */
            config_bytes: number;
            /** @description Bytes of `metadata` as JSON. */
            metadata_bytes: number;
            /** @description Characters of `external_session` and of `external_user`. */
            external_id_chars: number;
        };
        LimitRange: {
            minimum: number;
            maximum: number;
            /** @description The value of a request without the field. null: no limit. */
            default: number | null;
            /** @description Whether a request without the field is refused. */
            required: boolean;
        };
        McpPresignLimits: {
            /** @description Seconds. */
            expires_in: components["schemas"]["LimitRange"];
            /** @description Microdollars. */
            cost_limit: components["schemas"]["LimitRange"];
            /** @description Calls. */
            max_uses: components["schemas"]["LimitRange"];
            calls_per_minute: components["schemas"]["LimitRange"];
            calls_per_day: components["schemas"]["LimitRange"];
            concurrent_calls: components["schemas"]["LimitRange"];
            /** @description Servers of a bundle. */
            servers: number;
            /** @description Entries of `tools` of a server. */
            tools: number;
            /** @description Bytes of `metadata` as JSON. */
            metadata_bytes: number;
            /** @description Characters of `external_session` and of `external_user`. */
            external_id_chars: number;
        };
        /** @description Every request to this API. */
        RequestLimits: {
            /** @description Bytes of a body. */
            body_bytes: number;
            /** @description Levels that a body may nest. */
            body_depth: number;
            /** @description Values and names in a body. */
            body_values: number;
            /** @description Entries of a page without `limit`. */
            page_default: number;
            /** @description The largest `limit` of a list. */
            page_maximum: number;
            /** @description The largest `limit` of `GET /v1/usage`. */
            usage_groups: number;
            /** @description How long an `Idempotency-Key` is remembered. */
            idempotency_key_seconds: number;
            /** @description Endpoints of an account. */
            webhooks: number;
            /** @description Alerts of an account. */
            alerts: number;
        };
        /**
         * @example {
         *       "provider": "openai",
         *       "name": "production",
         *       "key": "sk-your-openai-key",
         *       "config": {
         *         "max_tokens": 500
         *       },
         *       "budget": {
         *         "cost_limit": 50000000
         *       }
         *     }
         */
        VirtualKeyRequest: {
            /** @description The provider whose key it is. */
            provider: string;
            /** @description Your name for it. */
            name: string;
            /**
             * Format: password
             * @description The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored, and no answer shows any part of it.
             */
            key: string;
            /**
             * @description As config of POST /v1/presign, whose fields take precedence over these.
             * @example {
             *       "max_tokens": 500
             *     }
             */
            config?: components["schemas"]["CallConfig"] | null;
            /** @description Limits over all URLs issued with it, in addition to the limits of each URL. Left out: none. A change can set them later. */
            budget?: components["schemas"]["VirtualKeyBudgetRequest"] | null;
        };
        VirtualKeyBudgetRequest: {
            /** @description Calls over all its URLs. -1: unlimited. */
            max_uses?: number | null;
            /** @description Microdollars over all its URLs. */
            cost_limit?: number | null;
        };
        VirtualKey: {
            /** @description The value for virtual_key of POST /v1/presign. */
            id: string;
            name: string;
            provider: string;
            config: components["schemas"]["CallConfig"] | null;
            /** @description Its limits, and the uses and spending of all its URLs. */
            budget: components["schemas"]["Budget"];
            /** @description 1. Every rotation adds 1. */
            version: number;
            /** @description 1. Every change of its name, config or budget adds 1. */
            revision: number;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in whole seconds; null: not deleted. */
            revoked_at: number | null;
        };
        VirtualKeyLiveFigures: {
            used: number;
            spent: number;
            held: number;
        };
        Budget: {
            /** @description null: no limit. */
            max_uses: number | null;
            /** @description Microdollars; null: no limit. */
            cost_limit: number | null;
            /** @description Uses and microdollars in the ledger. */
            settled: {
                used: number;
                spent: number;
            };
            /** @description Running calls included; null when Redis does not answer. */
            live: components["schemas"]["VirtualKeyLiveFigures"] | null;
        };
        VirtualKeyPage: {
            /** @description Newest first. */
            data: components["schemas"]["VirtualKey"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        /**
         * @example {
         *       "name": "production",
         *       "budget": {
         *         "cost_limit": 100000000
         *       }
         *     }
         */
        VirtualKeyChange: {
            /** @description Your name for it. */
            name?: string;
            /** @description Replaces all of it, for URLs that are issued from now on. null: none. */
            config?: components["schemas"]["CallConfig"] | null;
            /** @description The limits of its budget. null: none. The counted figures stay. */
            budget?: components["schemas"]["VirtualKeyBudgetChange"] | null;
        };
        VirtualKeyBudgetChange: {
            /** @description Calls over all its URLs, those that were made included. null, -1: unlimited. 0: no call passes. */
            max_uses?: number | null;
            /** @description Microdollars over all its URLs, those that are spent included. null: no limit. */
            cost_limit?: number | null;
        };
        /**
         * @example {
         *       "key": "sk-your-next-openai-key"
         *     }
         */
        RotationRequest: {
            /**
             * Format: password
             * @description The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored, and no answer shows any part of it.
             */
            key: string;
        };
        /**
         * @example {
         *       "name": "backend",
         *       "scopes": [
         *         "presign"
         *       ],
         *       "expires_in": 7776000,
         *       "policy": {
         *         "providers": [
         *           "openai"
         *         ],
         *         "models": [
         *           "gpt-4.1-mini"
         *         ],
         *         "highest": {
         *           "cost_limit": 250000,
         *           "expires_in": 900
         *         }
         *       }
         *     }
         */
        ApiKeyRequest: {
            /** @description Your name for it. */
            name: string;
            /** @description presign: issue and revoke URLs. read: read sessions, usage, virtual keys and the audit log. admin: everything in the account. operator: create, suspend and delete accounts. */
            scopes: components["schemas"]["Scope"][];
            /** @description Validity in seconds. Left out: it does not expire. */
            expires_in?: number | null;
            /** @description How many requests it may make in a minute. Left out: the operator's default. */
            requests_per_minute?: number | null;
            /** @description The URLs that it may issue. Not for a key with the scope admin or operator, which could create another key. Left out: all. */
            policy?: components["schemas"]["KeyPolicyRequest"] | null;
        };
        KeyPolicyRequest: {
            /** @description The providers. mcp stands for MCP servers. */
            providers?: string[] | null;
            /** @description Each path of a URL must be one of these, or match one in which * stands for any characters except /. */
            paths?: string[] | null;
            /** @description The models. The gateway refuses every other model on each URL of the key. */
            models?: string[] | null;
            /** @description The max_body_bytes of each URL of an LLM provider. A request can only lower it. */
            max_body_bytes?: number | null;
            /** @description The top-level fields of the bodies of each URL of an LLM provider, in addition to those of config. A request can only leave some out, and its config can set no other field. */
            allowed_fields?: string[] | null;
            /** @description The bind of each URL. A request can only leave origins out, and make ranges smaller. */
            bind?: components["schemas"]["BindRequest"] | null;
            /** @description false: no URL can be opened as a WebSocket. true: each URL of an LLM provider must be issued with `sockets`. */
            sockets?: boolean | null;
            /** @description A URL must use one of these virtual keys of the account, so client_api_key is refused. */
            virtual_keys?: string[] | null;
            /** @description The hosts of MCP servers, with the port if it is not the default of the scheme. */
            mcp_hosts?: string[] | null;
            /** @description Limits that each URL must have, of any size. */
            required?: components["schemas"]["LimitName"][] | null;
            /** @description Set in each URL. Neither the request nor its virtual key can change these settings. */
            config?: components["schemas"]["CallConfig"] | null;
            /** @description true: a URL that would be issued with `warnings` is refused with 400 instead. */
            refuse_warnings?: boolean | null;
            /** @description The external_user of each URL. */
            external_user?: string | null;
            /** @description The highest limits of a URL. A URL without such a limit is refused. */
            highest?: components["schemas"]["HighestLimitsRequest"] | null;
        };
        HighestLimitsRequest: {
            /** @description Microdollars. A URL must have a cost_limit. */
            cost_limit?: number | null;
            /** @description Calls. A URL must have a max_uses. */
            max_uses?: number | null;
            /** @description A URL must have a calls_per_minute. */
            calls_per_minute?: number | null;
            /** @description A URL must have a calls_per_day. */
            calls_per_day?: number | null;
            /** @description A URL must have a concurrent_calls. */
            concurrent_calls?: number | null;
            /** @description A URL of an LLM provider must have a tokens_per_minute. */
            tokens_per_minute?: number | null;
            /** @description Seconds. A request without expires_in gets one hour, or this if it is shorter. */
            expires_in?: number | null;
        };
        NewApiKey: {
            /** Format: uuid */
            id: string;
            name: string;
            scopes: components["schemas"]["Scope"][];
            /**
             * @description Its first and last characters, to recognise it. Only … for a key that the issuer did not make.
             * @example presign_sk_…x7Qa
             */
            hint: string;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in whole seconds; null: never. */
            expires_at: number | null;
            /** @description Unix time in whole seconds; null: not revoked. */
            revoked_at: number | null;
            /** @description null: the operator's default. */
            requests_per_minute: number | null;
            /** @description The URLs that it may issue. null: all. */
            policy: components["schemas"]["KeyPolicy"] | null;
            /** @description 1. Every change adds 1. */
            revision: number;
            /** @description Unix time in seconds, to the minute; null: never used. */
            last_used_at: number | null;
            /** @description The key. Only this answer shows it: the issuer stores only its hash. */
            key: string;
        };
        ApiKeyPage: {
            /** @description Newest first. */
            data: components["schemas"]["ApiKey"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        ApiKey: {
            /** Format: uuid */
            id: string;
            name: string;
            scopes: components["schemas"]["Scope"][];
            /**
             * @description Its first and last characters, to recognise it. Only … for a key that the issuer did not make.
             * @example presign_sk_…x7Qa
             */
            hint: string;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in whole seconds; null: never. */
            expires_at: number | null;
            /** @description Unix time in whole seconds; null: not revoked. */
            revoked_at: number | null;
            /** @description null: the operator's default. */
            requests_per_minute: number | null;
            /** @description The URLs that it may issue. null: all. */
            policy: components["schemas"]["KeyPolicy"] | null;
            /** @description 1. Every change adds 1. */
            revision: number;
            /** @description Unix time in seconds, to the minute; null: never used. */
            last_used_at: number | null;
        };
        /**
         * @example {
         *       "name": "backend",
         *       "requests_per_minute": 600
         *     }
         */
        ApiKeyChange: {
            /** @description Your name for it. */
            name?: string;
            /** @description Some of the scopes that it has. A new key can have others. */
            scopes?: components["schemas"]["Scope"][];
            /** @description When it expires, in Unix seconds. null: never. */
            expires_at?: number | null;
            /** @description How many requests it may make in a minute. null: the operator's default. */
            requests_per_minute?: number | null;
            /** @description The URLs that it may issue from now on, instead of the policy that it had. null: all. */
            policy?: components["schemas"]["KeyPolicyRequest"] | null;
        };
        /**
         * @example {
         *       "name": "customer-a",
         *       "limits": {
         *         "cost_limit": 5000000
         *       }
         *     }
         */
        AccountRequest: {
            /** @description Your name for it. */
            name: string;
            /** @description The most that the account may have. Left out: no limits. */
            limits?: components["schemas"]["AccountLimitsChange"] | null;
        };
        /** @description The most that the account may have. null removes a limit. */
        AccountLimitsChange: {
            /** @description API keys that are neither revoked nor expired. */
            api_keys?: number | null;
            /** @description Sessions with a URL that has neither expired nor been revoked. */
            sessions?: number | null;
            /** @description URLs and bundles that its API keys issue in a minute. */
            urls_per_minute?: number | null;
            /** @description The highest cost_limit of a URL or a bundle, in microdollars. Each must then have one. */
            cost_limit?: number | null;
        };
        NewAccount: {
            /** Format: uuid */
            id: string;
            name: string;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in whole seconds; null: not suspended. */
            suspended_at: number | null;
            /** @description Unix time in whole seconds; null: not deleted. */
            deleted_at: number | null;
            limits: components["schemas"]["AccountLimits"];
            /** @description 1. Every change of its name or limits adds 1. */
            revision: number;
            api_key: components["schemas"]["NewApiKey"];
        };
        AccountPage: {
            /** @description Newest first. */
            data: components["schemas"]["ListedAccount"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        ListedAccount: {
            /** Format: uuid */
            id: string;
            name: string;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in whole seconds; null: not suspended. */
            suspended_at: number | null;
            /** @description Unix time in whole seconds; null: not deleted. */
            deleted_at: number | null;
            limits: components["schemas"]["AccountLimits"];
            /** @description 1. Every change of its name or limits adds 1. */
            revision: number;
            /** @description With `include=usage` only. */
            usage?: components["schemas"]["AccountUsage"];
        };
        AccountUsage: {
            /** @description From the beginning of the month in UTC until now. */
            this_month: components["schemas"]["AccountMonth"];
            /** @description The whole month before. null: its sums are deleted. */
            last_month: components["schemas"]["AccountMonth"] | null;
            /** @description Unix time in whole seconds; null: no call is in the ledger. */
            last_call_at: number | null;
            /** @description API keys that are neither revoked nor expired. */
            live_api_keys: number;
            /** @description URLs that are neither revoked nor expired, counted up to 10000. */
            live_urls: number;
        };
        AccountMonth: {
            /** @description Unix time in whole seconds. */
            from: number;
            /** @description Unix time in whole seconds. */
            to: number;
            /** @description Settled calls. */
            calls: number;
            /** @description Microdollars of the calls whose cost is known. */
            cost: number;
        };
        Account: {
            /** Format: uuid */
            id: string;
            name: string;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in whole seconds; null: not suspended. */
            suspended_at: number | null;
            /** @description Unix time in whole seconds; null: not deleted. */
            deleted_at: number | null;
            limits: components["schemas"]["AccountLimits"];
            /** @description 1. Every change of its name or limits adds 1. */
            revision: number;
        };
        /**
         * @example {
         *       "limits": {
         *         "urls_per_minute": 600
         *       }
         *     }
         */
        AccountChange: {
            /** @description Your name for it. */
            name?: string;
            limits?: components["schemas"]["AccountLimitsChange"];
        };
        /**
         * @example {
         *       "scope": {
         *         "external_user": "*"
         *       },
         *       "cost_limit": 5000000,
         *       "window": "month"
         *     }
         */
        BudgetRequest: {
            /** @description Your name for it. No holder sees it. */
            name?: string | null;
            /** @description The URLs that it covers: those that are issued from now on. */
            scope: components["schemas"]["BudgetScopeRequest"];
            /** @description Calls in a window. -1: unlimited. */
            max_uses?: number | null;
            /** @description Microdollars in a window. */
            cost_limit?: number | null;
            /** @description Tokens of input and output in a window. Calls of MCP servers use none. */
            tokens?: number | null;
            /**
             * @description How long its figures count. lifetime: for good.
             * @default lifetime
             */
            window?: components["schemas"]["BudgetWindow"];
            /**
             * @description Where days, weeks and months begin: a name in the IANA database.
             * @default UTC
             * @example Europe/Berlin
             */
            time_zone?: string;
            /** @description A time at which a window begins, in Unix seconds. Left out: windows begin with the hour, the day, Monday or the month. */
            anchor?: number | null;
            /** @description Percents of each limit at which `budget.threshold` is sent. Empty: none. */
            thresholds?: number[];
            /** @description Whether holders of its URLs see its limits, what is left of them and when they reset; it then lowers output bounds, too. Left out: true for a scope of `external_user`, else false. */
            visible?: boolean | null;
        } & (unknown & unknown);
        MetadataScope: {
            [key: string]: string;
        };
        BudgetScopeRequest: {
            /** @description All URLs of the account. */
            account?: true | null;
            /** @description URLs that this API key issues. */
            api_key?: string | null;
            /** @description URLs of this virtual key. */
            virtual_key?: string | null;
            /** @description URLs with this `external_user`. `*`: each user gets a budget with the first URL that names the user. */
            external_user?: string | null;
            /** @description URLs whose `metadata` has this key with exactly this text. `*`: each value gets a budget with the first URL that has it. */
            metadata?: components["schemas"]["MetadataScope"] | null;
        } & (unknown & unknown & unknown & unknown & unknown & unknown & unknown & unknown & unknown & unknown & unknown);
        /** @enum {string} */
        BudgetWindow: "lifetime" | "hour" | "day" | "week" | "month";
        SharedBudget: {
            /** Format: uuid */
            id: string;
            kind: components["schemas"]["BudgetKind"];
            name: string | null;
            scope: components["schemas"]["BudgetScope"];
            /** @description Id of the template that made it. null: POST did. */
            template: string | null;
            /** @description Calls in a window. null: no limit. */
            max_uses: number | null;
            /** @description Microdollars in a window. null: no limit. */
            cost_limit: number | null;
            /** @description Tokens of input and output in a window. null: no limit. */
            tokens: number | null;
            /** @description Percents of each limit at which `budget.threshold` is sent. */
            thresholds: number[];
            /** @description Whether holders of its URLs see it. */
            visible: boolean;
            window: components["schemas"]["BudgetWindow"];
            time_zone: string;
            /** @description Unix time in seconds. null: none. */
            anchor: number | null;
            /** @description 1. Every change adds 1. */
            revision: number;
            /** @description The present window. null: no call has drawn on it, or it is a template. */
            current: components["schemas"]["CurrentWindow"] | null;
            /** @description It covers URLs that were issued later. Unix time in seconds. */
            created_at: number;
            /** @description null: not deleted. */
            deleted_at: number | null;
        };
        /**
         * @description template: it makes a budget for each user or value, and has no figures of its own.
         * @enum {string}
         */
        BudgetKind: "budget" | "template";
        /** @description Exactly one field. */
        BudgetScope: {
            /** @constant */
            account?: true;
            /** Format: uuid */
            api_key?: string;
            virtual_key?: string;
            external_user?: string;
            metadata?: {
                [key: string]: string;
            };
        };
        CurrentWindow: {
            /** @description Unix time in whole seconds. */
            starts_at: number;
            /** @description null: it has no end. */
            ends_at: number | null;
            settled: components["schemas"]["SettledOfWindow"];
            /** @description Running calls included. null: Redis does not answer. */
            live: components["schemas"]["LiveFiguresOfWindow"] | null;
        };
        /** @description Calls, microdollars and tokens in the ledger. */
        SettledOfWindow: {
            used: number;
            spent: number;
            tokens: number;
        };
        LiveFiguresOfWindow: {
            used: number;
            spent: number;
            held: number;
            tokens: number;
            tokens_held: number;
        };
        SharedBudgetPage: {
            /** @description Newest first. */
            data: components["schemas"]["SharedBudget"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        /**
         * @example {
         *       "cost_limit": 10000000
         *     }
         */
        BudgetChange: {
            /** @description null: none. */
            name?: string | null;
            /** @description Calls in a window, those of this window included. null, -1: unlimited. 0: no call passes. */
            max_uses?: number | null;
            /** @description Microdollars in a window, those of this window included. null: no limit. */
            cost_limit?: number | null;
            /** @description Tokens in a window, those of this window included. null: no limit. */
            tokens?: number | null;
            /** @description Empty: none. */
            thresholds?: number[];
            /** @description Whether holders of its URLs see it. */
            visible?: boolean;
        };
        /**
         * @example {
         *       "url": "https://example.com/webhooks",
         *       "events": [
         *         "session.exhausted",
         *         "usage.settled"
         *       ]
         *     }
         */
        WebhookRequest: {
            /** @description The https URL that events are sent to by POST. Its address must be public. */
            url: string;
            /**
             * @description `slack`: the url is an incoming webhook of Slack. It gets the messages of alerts that name it.
             * @default standard
             */
            format?: components["schemas"]["WebhookFormat"];
            /** @description Types of events to send. Left out: all except audit.entry. Empty: only those of alerts that name it. A Slack endpoint has none. */
            events?: components["schemas"]["EventType"][] | null;
            /** @description Your description of it. */
            description?: string | null;
        } & unknown;
        /** @enum {string} */
        WebhookFormat: "standard" | "slack";
        /** @enum {string} */
        EventType: "session.exhausted" | "grant.threshold" | "virtual_key.threshold" | "budget.threshold" | "budget.exhausted" | "budget.reset" | "grant.revoked" | "grant.expired" | "usage.settled" | "audit.entry";
        WebhookWithSecret: {
            /** Format: uuid */
            id: string;
            format: components["schemas"]["WebhookFormat"];
            /** @description A Slack endpoint shows only the host: the rest of its URL is a secret. */
            url: string;
            /** @description null: all except audit.entry. Empty: only those of alerts that name it. */
            events: components["schemas"]["EventType"][] | null;
            description: string | null;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in seconds. Until then, the previous secret also signs. */
            previous_secret_expires_at: number | null;
            status: components["schemas"]["WebhookStatus"];
            /** @description `gone`: it answered 410. `failing`: every attempt failed for days. */
            disabled_reason: components["schemas"]["DisabledReason"] | null;
            disabled_at: number | null;
            /** @description Unix time in seconds of the first failure since the last success. null: no attempt failed since then. */
            failing_since: number | null;
            /** @description 1. Every change of its url, events or description adds 1. */
            revision: number;
            /** @description Only this answer shows it: `whsec_` and base64, the form that the libraries of Standard Webhooks accept. null: requests to Slack are not signed. */
            secret: string | null;
        };
        /**
         * @description `disabled`: it receives nothing until you enable it.
         * @enum {string}
         */
        WebhookStatus: "enabled" | "disabled";
        /** @enum {string} */
        DisabledReason: "gone" | "failing";
        WebhookPage: {
            /** @description Newest first. */
            data: components["schemas"]["Webhook"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        Webhook: {
            /** Format: uuid */
            id: string;
            format: components["schemas"]["WebhookFormat"];
            /** @description A Slack endpoint shows only the host: the rest of its URL is a secret. */
            url: string;
            /** @description null: all except audit.entry. Empty: only those of alerts that name it. */
            events: components["schemas"]["EventType"][] | null;
            description: string | null;
            /** @description Unix time in whole seconds. */
            created_at: number;
            /** @description Unix time in seconds. Until then, the previous secret also signs. */
            previous_secret_expires_at: number | null;
            status: components["schemas"]["WebhookStatus"];
            /** @description `gone`: it answered 410. `failing`: every attempt failed for days. */
            disabled_reason: components["schemas"]["DisabledReason"] | null;
            disabled_at: number | null;
            /** @description Unix time in seconds of the first failure since the last success. null: no attempt failed since then. */
            failing_since: number | null;
            /** @description 1. Every change of its url, events or description adds 1. */
            revision: number;
        };
        /**
         * @example {
         *       "events": [
         *         "grant.revoked",
         *         "audit.entry"
         *       ]
         *     }
         */
        WebhookChange: {
            /** @description Where events are sent from now on, also those whose delivery is under way. The secret stays. */
            url?: string;
            /** @description Types of events that happen from now on. null: all except audit.entry. */
            events?: components["schemas"]["EventType"][] | null;
            /** @description Your description of it. null: none. */
            description?: string | null;
        };
        Delivery: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uuid
             * @description The value of the header `webhook-id`, the same at every attempt and after a replay.
             */
            event_id: string;
            type: components["schemas"]["DeliveryType"];
            status: components["schemas"]["DeliveryStatus"];
            /** @description Attempts since it was created or replayed. */
            attempts: number;
            /** @description HTTP status of the last attempt's answer; null when none came. */
            last_status: number | null;
            /** @description Why the last attempt failed; null when it did not. */
            last_error: components["schemas"]["DeliveryError"] | null;
            /** @description Unix time in seconds; null when no further attempt is made. */
            next_try_at: number | null;
            /** @description Unix time in whole seconds. */
            created_at: number;
            delivered_at: number | null;
        };
        /** @enum {string} */
        DeliveryType: "session.exhausted" | "grant.threshold" | "virtual_key.threshold" | "budget.threshold" | "budget.exhausted" | "budget.reset" | "grant.revoked" | "grant.expired" | "usage.settled" | "audit.entry" | "alert.fired" | "alert.resolved" | "webhook.test";
        /** @enum {string} */
        DeliveryStatus: "pending" | "delivered" | "failed";
        /** @enum {string} */
        DeliveryError: "http_status" | "timeout" | "unreachable" | "address_not_public" | "secret_unreadable" | "endpoint_disabled";
        DeliveryPage: {
            /** @description Newest first. */
            data: components["schemas"]["Delivery"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        /**
         * @example {
         *       "name": "Daily spend",
         *       "condition": {
         *         "spend": {
         *           "window": "day",
         *           "amount": 50000000
         *         }
         *       }
         *     }
         */
        AlertRequest: {
            /** @description Your name for it. Its messages begin with it. */
            name: string;
            /** @description When it fires. */
            condition: components["schemas"]["AlertConditionRequest"];
            /** @description Id of the endpoint that gets its events. Left out: it shows in the console alone. */
            webhook?: string | null;
            /**
             * @description Whether it is evaluated.
             * @default true
             */
            enabled?: boolean;
        };
        BudgetCondition: {
            /**
             * Format: uuid
             * @description Id of a shared budget, and of no template.
             */
            budget: string;
            /** @description It fires once so much of the fullest of its limits is settled. */
            percent: number;
        };
        SpendCondition: {
            /** @description The window that calls are added up in. It counts from its beginning. */
            window: components["schemas"]["AlertWindow"];
            /**
             * @description Where days begin: a name in the IANA database.
             * @default UTC
             * @example Europe/Berlin
             */
            time_zone?: string;
            /** @description It fires at so many microdollars of settled calls. */
            amount: number;
        };
        /** @enum {string} */
        AlertWindow: "hour" | "day";
        SpendJumpCondition: {
            /** @description The window that calls are added up in. It counts from its beginning. */
            window: components["schemas"]["AlertWindow"];
            /**
             * @description Where days begin: a name in the IANA database.
             * @default UTC
             * @example Europe/Berlin
             */
            time_zone?: string;
            /** @description It fires at so many times the mean of the 7 days before, or of the same hour of the 7 days before. */
            factor: number;
            /** @description Below so many microdollars it does not fire. */
            at_least: number;
        };
        FailuresCondition: {
            /** @description It fires once so many percent of the calls failed, and neither their holder nor their issuer was the cause. */
            percent: number;
            /**
             * @description With fewer calls it does not fire.
             * @default 20
             */
            calls?: number;
            /**
             * @description Calls that settled in the last minutes count.
             * @default 15
             */
            minutes?: number;
            /** @description Only calls to this provider. `mcp`: calls of MCP servers. Left out: all. */
            provider?: string | null;
        };
        AlertConditionRequest: {
            /** @description A part of a shared budget is settled. */
            budget?: components["schemas"]["BudgetCondition"] | null;
            /** @description Calls of an hour or a day cost so much. */
            spend?: components["schemas"]["SpendCondition"] | null;
            /** @description They cost much more than before. */
            spend_jump?: components["schemas"]["SpendJumpCondition"] | null;
            /** @description Calls fail. */
            errors?: components["schemas"]["FailuresCondition"] | null;
        } & (unknown & unknown & unknown & unknown & unknown & unknown & unknown);
        Alert: {
            /** Format: uuid */
            id: string;
            name: string;
            condition: components["schemas"]["AlertCondition"];
            /** @description Id of the endpoint that gets its events. null: none, or it was deleted. */
            webhook: string | null;
            enabled: boolean;
            /** @description Unix time in whole seconds; null: it does not fire. */
            firing_since: number | null;
            /** @description The last figure. Microdollars for spend, else percent. null: there is none yet. */
            value: number | null;
            /** @description The figure at which it fires. null: there is none yet. */
            threshold: number | null;
            /** @description Unix time in whole seconds; null: it was not evaluated yet. */
            checked_at: number | null;
            /** @description 1. Every change adds 1. */
            revision: number;
            /** @description Unix time in whole seconds. */
            created_at: number;
        };
        /** @description Exactly one field. */
        AlertCondition: {
            budget?: components["schemas"]["AlertOfBudget"];
            spend?: components["schemas"]["AlertOfSpend"];
            spend_jump?: components["schemas"]["AlertOfSpendJump"];
            errors?: components["schemas"]["AlertOfFailures"];
        };
        AlertOfBudget: {
            /** Format: uuid */
            budget: string;
            percent: number;
        };
        AlertOfSpend: {
            window: components["schemas"]["AlertWindow"];
            time_zone: string;
            amount: number;
        };
        AlertOfSpendJump: {
            window: components["schemas"]["AlertWindow"];
            time_zone: string;
            factor: number;
            at_least: number;
        };
        AlertOfFailures: {
            percent: number;
            calls: number;
            minutes: number;
            provider?: string;
        };
        AlertPage: {
            /** @description Newest first. */
            data: components["schemas"]["Alert"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        /**
         * @example {
         *       "enabled": false
         *     }
         */
        AlertChange: {
            /** @description Your name for it. */
            name?: string;
            /** @description Replaces all of it. If the alert fires, it is resolved first. */
            condition?: components["schemas"]["AlertConditionRequest"];
            /** @description Id of the endpoint that gets its events from now on. null: none. */
            webhook?: string | null;
            /** @description false: it is evaluated no more. If it fires, it is resolved. */
            enabled?: boolean;
        };
        AlertFiringPage: {
            /** @description Newest first. */
            data: components["schemas"]["AlertFiring"][];
            /** @description The cursor of the next page. null: this is the last page. */
            next_cursor: string | null;
        };
        AlertFiring: {
            /**
             * Format: uuid
             * @description Also the `webhook-id` of its `alert.fired`.
             */
            id: string;
            /** @description Unix time in whole seconds. */
            fired_at: number;
            /** @description Unix time in whole seconds; null: it still fires. */
            resolved_at: number | null;
            /** @description Microdollars for spend, else percent. */
            value: number;
            /** @description Microdollars for spend, else percent. */
            threshold: number;
            /** @description Unix time in whole seconds; null: the window of the budget has no beginning. */
            starts_at: number | null;
            /** @description Unix time in whole seconds; null: the window of the budget has no end. */
            ends_at: number | null;
            /** @description How `alert.fired` was delivered. null: to no endpoint. */
            delivery: components["schemas"]["AlertDelivery"] | null;
        };
        AlertDelivery: {
            status: components["schemas"]["DeliveryStatus"];
            attempts: number;
            last_status: number | null;
            last_error: components["schemas"]["DeliveryError"] | null;
        };
        PublicKeys: {
            keys: components["schemas"]["PublicKey"][];
        };
        PublicKey: {
            kid: string;
            public_key: string;
        };
        ErrorDetails: {
            code: components["schemas"]["ErrorCode"];
            /** @description For people. It may be more precise than the table, and may change. */
            message: string;
            type: components["schemas"]["ErrorType"];
            /** @description The field or header at fault, as the caller wrote it. */
            param: string | null;
            /**
             * Format: uuid
             * @description Names the request in the log.
             */
            request_id: string;
            /** @description If several fields are wrong: all of them, at most 20. The first is also in `param` and `message`. */
            problems?: components["schemas"]["FieldProblem"][];
        } & {
            [key: string]: unknown;
        };
        /**
         * @description Stable: programs switch on it.
         * @enum {string}
         */
        ErrorCode: "invalid_request" | "invalid_json" | "unknown_provider" | "unauthenticated" | "token_invalid" | "token_expired" | "cost_limit_reached" | "cost_limit_too_low" | "token_limit_reached" | "token_limit_too_low" | "forbidden" | "policy_forbids" | "account_limit" | "account_suspended" | "grant_revoked" | "uses_exhausted" | "path_not_allowed" | "method_not_allowed" | "model_not_allowed" | "origin_not_allowed" | "address_not_allowed" | "field_not_allowed" | "tool_not_allowed" | "argument_not_allowed" | "not_found" | "method_not_supported" | "session_conflict" | "idempotency_conflict" | "last_admin_key" | "own_account" | "virtual_key_revoked" | "grant_ended" | "api_key_ended" | "budget_deleted" | "account_deleted" | "budget_conflict" | "revision_mismatch" | "body_too_large" | "unsupported_media_type" | "sockets_not_allowed" | "price_unknown" | "cost_unbounded" | "tokens_unbounded" | "token_rate_too_low" | "rate_limited" | "daily_rate_limited" | "token_rate_limited" | "concurrency_limited" | "cost_held" | "tokens_held" | "internal_error" | "upstream_unreachable" | "upstream_auth_failed" | "overloaded" | "limits_unavailable" | "database_unavailable" | "upstream_timeout";
        /**
         * @description As SDKs of providers name it.
         * @enum {string}
         */
        ErrorType: "invalid_request_error" | "authentication_error" | "insufficient_quota" | "permission_error" | "not_found_error" | "conflict_error" | "rate_limit_error" | "api_error";
        FieldProblem: {
            /** @description The field or header at fault, as the caller wrote it. */
            param: string | null;
            message: string;
        };
        ErrorBody: {
            error: components["schemas"]["ErrorDetails"];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type CallMethod = components['schemas']['CallMethod'];
export type CallConfig = components['schemas']['CallConfig'];
export type Metadata = components['schemas']['Metadata'];
export type PresignRequest = components['schemas']['PresignRequest'];
export type BindRequest = components['schemas']['BindRequest'];
export type AddressRange = components['schemas']['AddressRange'];
export type PresignAnswer = components['schemas']['PresignAnswer'];
export type CriticalClaim = components['schemas']['CriticalClaim'];
export type LlmClaims = components['schemas']['LlmClaims'];
export type Warning = components['schemas']['Warning'];
export type WarningCode = components['schemas']['WarningCode'];
export type McpPresignRequest = components['schemas']['McpPresignRequest'];
export type BearerAuth = components['schemas']['BearerAuth'];
export type McpHeaders = components['schemas']['McpHeaders'];
export type ApiKeyAuth = components['schemas']['ApiKeyAuth'];
export type OAuth = components['schemas']['OAuth'];
export type NoAuth = components['schemas']['NoAuth'];
export type ArgumentConditions = components['schemas']['ArgumentConditions'];
export type ArgumentCondition = components['schemas']['ArgumentCondition'];
export type ToolArguments = components['schemas']['ToolArguments'];
export type McpServerRequest = components['schemas']['McpServerRequest'];
export type McpTransport = components['schemas']['McpTransport'];
export type McpAuthType = components['schemas']['McpAuthType'];
export type ToolPrices = components['schemas']['ToolPrices'];
export type McpPricing = components['schemas']['McpPricing'];
export type McpPresignAnswer = components['schemas']['McpPresignAnswer'];
export type McpServerUrl = components['schemas']['McpServerUrl'];
export type McpBundleClaims = components['schemas']['McpBundleClaims'];
export type SessionStatus = components['schemas']['SessionStatus'];
export type SessionPage = components['schemas']['SessionPage'];
export type SessionSummary = components['schemas']['SessionSummary'];
export type Pending = components['schemas']['Pending'];
export type Session = components['schemas']['Session'];
export type SessionGrant = components['schemas']['SessionGrant'];
export type GrantKind = components['schemas']['GrantKind'];
export type McpServer = components['schemas']['McpServer'];
export type StoredArguments = components['schemas']['StoredArguments'];
export type StoredConditions = components['schemas']['StoredConditions'];
export type GrantStatus = components['schemas']['GrantStatus'];
export type Conditions = components['schemas']['Conditions'];
export type Bind = components['schemas']['Bind'];
export type Settled = components['schemas']['Settled'];
export type LiveFigures = components['schemas']['LiveFigures'];
export type SessionChange = components['schemas']['SessionChange'];
export type GrantChange = components['schemas']['GrantChange'];
export type ChangedSession = components['schemas']['ChangedSession'];
export type ChangedUrl = components['schemas']['ChangedUrl'];
export type GrantPage = components['schemas']['GrantPage'];
export type Grant = components['schemas']['Grant'];
export type ChangedGrant = components['schemas']['ChangedGrant'];
export type LedgerOutcome = components['schemas']['LedgerOutcome'];
export type UsageReport = components['schemas']['UsageReport'];
export type UsageDimension = components['schemas']['UsageDimension'];
export type UsageField = components['schemas']['UsageField'];
export type UsageRow = components['schemas']['UsageRow'];
export type UsageSums = components['schemas']['UsageSums'];
export type HourDimension = components['schemas']['HourDimension'];
export type UsageHours = components['schemas']['UsageHours'];
export type UsageHour = components['schemas']['UsageHour'];
export type CallsByOutcome = components['schemas']['CallsByOutcome'];
export type Percentiles = components['schemas']['Percentiles'];
export type Refusals = components['schemas']['Refusals'];
export type RefusalCount = components['schemas']['RefusalCount'];
export type RefusedName = components['schemas']['RefusedName'];
export type OutcomeFilter = components['schemas']['OutcomeFilter'];
export type CallPage = components['schemas']['CallPage'];
export type Call = components['schemas']['Call'];
export type Outcome = components['schemas']['Outcome'];
export type CallMetadata = components['schemas']['CallMetadata'];
export type PriceListOfCall = components['schemas']['PriceListOfCall'];
export type RefusalOfCall = components['schemas']['RefusalOfCall'];
export type LimitOwner = components['schemas']['LimitOwner'];
export type CallWithRefunds = components['schemas']['CallWithRefunds'];
export type PriceLine = components['schemas']['PriceLine'];
export type Refund = components['schemas']['Refund'];
export type SimilarCalls = components['schemas']['SimilarCalls'];
export type SearchKind = components['schemas']['SearchKind'];
export type SearchAnswer = components['schemas']['SearchAnswer'];
export type Named = components['schemas']['Named'];
export type AuditAction = components['schemas']['AuditAction'];
export type AuditTargetKind = components['schemas']['AuditTargetKind'];
export type AuditPage = components['schemas']['AuditPage'];
export type AuditEntry = components['schemas']['AuditEntry'];
export type AuditTarget = components['schemas']['AuditTarget'];
export type AuditState = components['schemas']['AuditState'];
export type Models = components['schemas']['Models'];
export type PriceList = components['schemas']['PriceList'];
export type PriceSource = components['schemas']['PriceSource'];
export type PricedModel = components['schemas']['PricedModel'];
export type Rates = components['schemas']['Rates'];
export type Limits = components['schemas']['Limits'];
export type ApiKeyOfRequest = components['schemas']['ApiKeyOfRequest'];
export type Scope = components['schemas']['Scope'];
export type KeyPolicy = components['schemas']['KeyPolicy'];
export type LimitName = components['schemas']['LimitName'];
export type HighestLimits = components['schemas']['HighestLimits'];
export type AccountLimits = components['schemas']['AccountLimits'];
export type PresignLimits = components['schemas']['PresignLimits'];
export type LimitRange = components['schemas']['LimitRange'];
export type McpPresignLimits = components['schemas']['McpPresignLimits'];
export type RequestLimits = components['schemas']['RequestLimits'];
export type VirtualKeyRequest = components['schemas']['VirtualKeyRequest'];
export type VirtualKeyBudgetRequest = components['schemas']['VirtualKeyBudgetRequest'];
export type VirtualKey = components['schemas']['VirtualKey'];
export type VirtualKeyLiveFigures = components['schemas']['VirtualKeyLiveFigures'];
export type Budget = components['schemas']['Budget'];
export type VirtualKeyPage = components['schemas']['VirtualKeyPage'];
export type VirtualKeyChange = components['schemas']['VirtualKeyChange'];
export type VirtualKeyBudgetChange = components['schemas']['VirtualKeyBudgetChange'];
export type RotationRequest = components['schemas']['RotationRequest'];
export type ApiKeyRequest = components['schemas']['ApiKeyRequest'];
export type KeyPolicyRequest = components['schemas']['KeyPolicyRequest'];
export type HighestLimitsRequest = components['schemas']['HighestLimitsRequest'];
export type NewApiKey = components['schemas']['NewApiKey'];
export type ApiKeyPage = components['schemas']['ApiKeyPage'];
export type ApiKey = components['schemas']['ApiKey'];
export type ApiKeyChange = components['schemas']['ApiKeyChange'];
export type AccountRequest = components['schemas']['AccountRequest'];
export type AccountLimitsChange = components['schemas']['AccountLimitsChange'];
export type NewAccount = components['schemas']['NewAccount'];
export type AccountPage = components['schemas']['AccountPage'];
export type ListedAccount = components['schemas']['ListedAccount'];
export type AccountUsage = components['schemas']['AccountUsage'];
export type AccountMonth = components['schemas']['AccountMonth'];
export type Account = components['schemas']['Account'];
export type AccountChange = components['schemas']['AccountChange'];
export type BudgetRequest = components['schemas']['BudgetRequest'];
export type MetadataScope = components['schemas']['MetadataScope'];
export type BudgetScopeRequest = components['schemas']['BudgetScopeRequest'];
export type BudgetWindow = components['schemas']['BudgetWindow'];
export type SharedBudget = components['schemas']['SharedBudget'];
export type BudgetKind = components['schemas']['BudgetKind'];
export type BudgetScope = components['schemas']['BudgetScope'];
export type CurrentWindow = components['schemas']['CurrentWindow'];
export type SettledOfWindow = components['schemas']['SettledOfWindow'];
export type LiveFiguresOfWindow = components['schemas']['LiveFiguresOfWindow'];
export type SharedBudgetPage = components['schemas']['SharedBudgetPage'];
export type BudgetChange = components['schemas']['BudgetChange'];
export type WebhookRequest = components['schemas']['WebhookRequest'];
export type WebhookFormat = components['schemas']['WebhookFormat'];
export type EventType = components['schemas']['EventType'];
export type WebhookWithSecret = components['schemas']['WebhookWithSecret'];
export type WebhookStatus = components['schemas']['WebhookStatus'];
export type DisabledReason = components['schemas']['DisabledReason'];
export type WebhookPage = components['schemas']['WebhookPage'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookChange = components['schemas']['WebhookChange'];
export type Delivery = components['schemas']['Delivery'];
export type DeliveryType = components['schemas']['DeliveryType'];
export type DeliveryStatus = components['schemas']['DeliveryStatus'];
export type DeliveryError = components['schemas']['DeliveryError'];
export type DeliveryPage = components['schemas']['DeliveryPage'];
export type AlertRequest = components['schemas']['AlertRequest'];
export type BudgetCondition = components['schemas']['BudgetCondition'];
export type SpendCondition = components['schemas']['SpendCondition'];
export type AlertWindow = components['schemas']['AlertWindow'];
export type SpendJumpCondition = components['schemas']['SpendJumpCondition'];
export type FailuresCondition = components['schemas']['FailuresCondition'];
export type AlertConditionRequest = components['schemas']['AlertConditionRequest'];
export type Alert = components['schemas']['Alert'];
export type AlertCondition = components['schemas']['AlertCondition'];
export type AlertOfBudget = components['schemas']['AlertOfBudget'];
export type AlertOfSpend = components['schemas']['AlertOfSpend'];
export type AlertOfSpendJump = components['schemas']['AlertOfSpendJump'];
export type AlertOfFailures = components['schemas']['AlertOfFailures'];
export type AlertPage = components['schemas']['AlertPage'];
export type AlertChange = components['schemas']['AlertChange'];
export type AlertFiringPage = components['schemas']['AlertFiringPage'];
export type AlertFiring = components['schemas']['AlertFiring'];
export type AlertDelivery = components['schemas']['AlertDelivery'];
export type PublicKeys = components['schemas']['PublicKeys'];
export type PublicKey = components['schemas']['PublicKey'];
export type ErrorDetails = components['schemas']['ErrorDetails'];
export type ErrorCode = components['schemas']['ErrorCode'];
export type ErrorType = components['schemas']['ErrorType'];
export type FieldProblem = components['schemas']['FieldProblem'];
export type ErrorBody = components['schemas']['ErrorBody'];
export interface operations {
    presign: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "provider": "openai",
                 *       "path": "/v1/chat/completions",
                 *       "client_api_key": "sk-your-openai-key",
                 *       "expires_in": 600,
                 *       "max_uses": 20,
                 *       "cost_limit": 250000,
                 *       "config": {
                 *         "model": "gpt-4.1-mini",
                 *         "max_tokens": 500
                 *       },
                 *       "external_user": "user-42"
                 *     }
                 */
                "application/json": components["schemas"]["PresignRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "url": "https://gateway.example.com/llm/t/v4.public.eyJ.../v1/chat/completions",
                     *       "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *       "expires_at": 1767225600,
                     *       "grant_id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *       "claims": {
                     *         "jti": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *         "sub": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *         "iat": "2025-12-31T23:50:00.000Z",
                     *         "exp": "2026-01-01T00:00:00.000Z",
                     *         "iss": "https://presign.example.com",
                     *         "aud": "https://gateway.example.com",
                     *         "prt": 17,
                     *         "knd": "llm",
                     *         "prv": "openai",
                     *         "mth": "POST",
                     *         "pth": [
                     *           "/v1/chat/completions"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["PresignAnswer"];
                };
            };
        };
    };
    mcpPresign: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "servers": [
                 *         {
                 *           "name": "docs",
                 *           "url": "https://mcp.example.com/mcp",
                 *           "transport": "http",
                 *           "auth_type": "bearer",
                 *           "auth_config": {
                 *             "token": "your-token"
                 *           },
                 *           "pricing": {
                 *             "default": 1000,
                 *             "tools": {
                 *               "search": 5000
                 *             }
                 *           }
                 *         }
                 *       ],
                 *       "expires_in": 3600,
                 *       "max_uses": 100,
                 *       "cost_limit": 500000,
                 *       "external_user": "user-42"
                 *     }
                 */
                "application/json": components["schemas"]["McpPresignRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "bundle_url": "https://gateway.example.com/mcp/bundle/v4.public.eyJ...",
                     *       "bundle_token": "v4.public.eyJ...",
                     *       "expires_at": 1767225600,
                     *       "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *       "servers": {
                     *         "docs": {
                     *           "url": "https://gateway.example.com/mcp/mcp?url=https%3A%2F%2Fmcp.example.com%2Fmcp&token=v4.public.eyJ...",
                     *           "transport": "http"
                     *         }
                     *       },
                     *       "grant_id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *       "claims": {
                     *         "jti": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *         "sub": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *         "iat": "2025-12-31T23:00:00.000Z",
                     *         "exp": "2026-01-01T00:00:00.000Z",
                     *         "iss": "https://presign.example.com",
                     *         "aud": "https://gateway.example.com",
                     *         "prt": 17,
                     *         "knd": "mcp_bundle"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["McpPresignAnswer"];
                };
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
                /** @description Only sessions with a grant that was issued with this external_session. */
                external_session?: string;
                /** @description Only sessions with a grant that was issued with this external_user. */
                external_user?: string;
                /** @description Only sessions with a grant that this API key issued, by its id. */
                api_key?: string;
                /** @description Left out: both. */
                status?: components["schemas"]["SessionStatus"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *           "name": "chat of user 42",
                     *           "created_at": 1767225000,
                     *           "revoked_at": null,
                     *           "status": "active",
                     *           "grant_count": 1,
                     *           "expires_at": 1767225600,
                     *           "external_sessions": [],
                     *           "external_users": [
                     *             "user-42"
                     *           ],
                     *           "revision": 2
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["SessionPage"];
                };
            };
        };
    };
    revokeSessions: {
        parameters: {
            query?: {
                /** @description Revoke what was issued with this external_session. */
                external_session?: string;
                /** @description Revoke what was issued with this external_user. */
                external_user?: string;
                /** @description Revoke what this API key issued, by its id. */
                api_key?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    getSession: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *       "name": "chat of user 42",
                     *       "created_at": 1767225000,
                     *       "revoked_at": null,
                     *       "status": "active",
                     *       "grant_count": 1,
                     *       "expires_at": 1767225600,
                     *       "external_sessions": [],
                     *       "external_users": [
                     *         "user-42"
                     *       ],
                     *       "revision": 2,
                     *       "metadata": null,
                     *       "grants": [
                     *         {
                     *           "id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *           "kind": "llm",
                     *           "provider": "openai",
                     *           "method": "POST",
                     *           "paths": [
                     *             "/v1/chat/completions"
                     *           ],
                     *           "models": null,
                     *           "server": null,
                     *           "bundle_id": null,
                     *           "external_session": null,
                     *           "external_user": "user-42",
                     *           "virtual_key": null,
                     *           "api_key": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *           "metadata": {
                     *             "team": "support"
                     *           },
                     *           "issued_at": 1767225000,
                     *           "expires_at": 1767225600,
                     *           "status": "active",
                     *           "cost_limit": 250000,
                     *           "max_uses": 20,
                     *           "calls_per_minute": null,
                     *           "calls_per_day": null,
                     *           "concurrent_calls": null,
                     *           "tokens_per_minute": null,
                     *           "conditions": null,
                     *           "shared_budgets": [
                     *             "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b"
                     *           ],
                     *           "revision": 1,
                     *           "settled": {
                     *             "used": 3,
                     *             "spent": 1840
                     *           },
                     *           "live": {
                     *             "used": 4,
                     *             "spent": 1840,
                     *             "held": 2100
                     *           }
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["Session"];
                };
            };
        };
    };
    revokeSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "chat of user 42",
                 *       "grants": {
                 *         "max_uses": 500
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["SessionChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *       "name": "chat of user 42",
                     *       "created_at": 1767225000,
                     *       "revoked_at": null,
                     *       "status": "active",
                     *       "grant_count": 1,
                     *       "expires_at": 1767225600,
                     *       "external_sessions": [],
                     *       "external_users": [
                     *         "user-42"
                     *       ],
                     *       "revision": 2,
                     *       "metadata": null,
                     *       "changed": [
                     *         {
                     *           "id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *           "url": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ChangedSession"];
                };
            };
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
        };
    };
    listGrants: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
                /** @description Only those that were issued with this external_session. */
                external_session?: string;
                /** @description Only those that were issued with this external_user. */
                external_user?: string;
                /** @description Only those of this session. */
                session_id?: string;
                /** @description Only those that this API key issued, by its id. */
                api_key?: string;
                /** @description Left out: all. A URL that has just used up a limit is found as `exhausted` once the ledger has its calls. */
                status?: components["schemas"]["GrantStatus"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *           "kind": "llm",
                     *           "provider": "openai",
                     *           "method": "POST",
                     *           "paths": [
                     *             "/v1/chat/completions"
                     *           ],
                     *           "models": null,
                     *           "server": null,
                     *           "bundle_id": null,
                     *           "external_session": null,
                     *           "external_user": "user-42",
                     *           "virtual_key": null,
                     *           "api_key": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *           "metadata": {
                     *             "team": "support"
                     *           },
                     *           "issued_at": 1767225000,
                     *           "expires_at": 1767225600,
                     *           "status": "active",
                     *           "cost_limit": 250000,
                     *           "max_uses": 20,
                     *           "calls_per_minute": null,
                     *           "calls_per_day": null,
                     *           "concurrent_calls": null,
                     *           "tokens_per_minute": null,
                     *           "conditions": null,
                     *           "shared_budgets": [
                     *             "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b"
                     *           ],
                     *           "revision": 1,
                     *           "settled": {
                     *             "used": 3,
                     *             "spent": 1840
                     *           },
                     *           "live": {
                     *             "used": 4,
                     *             "spent": 1840,
                     *             "held": 2100
                     *           },
                     *           "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *           "session_name": "chat of user 42"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GrantPage"];
                };
            };
        };
    };
    getGrant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *       "kind": "llm",
                     *       "provider": "openai",
                     *       "method": "POST",
                     *       "paths": [
                     *         "/v1/chat/completions"
                     *       ],
                     *       "models": null,
                     *       "server": null,
                     *       "bundle_id": null,
                     *       "external_session": null,
                     *       "external_user": "user-42",
                     *       "virtual_key": null,
                     *       "api_key": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *       "metadata": {
                     *         "team": "support"
                     *       },
                     *       "issued_at": 1767225000,
                     *       "expires_at": 1767225600,
                     *       "status": "active",
                     *       "cost_limit": 250000,
                     *       "max_uses": 20,
                     *       "calls_per_minute": null,
                     *       "calls_per_day": null,
                     *       "concurrent_calls": null,
                     *       "tokens_per_minute": null,
                     *       "conditions": null,
                     *       "shared_budgets": [
                     *         "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b"
                     *       ],
                     *       "revision": 1,
                     *       "settled": {
                     *         "used": 3,
                     *         "spent": 1840
                     *       },
                     *       "live": {
                     *         "used": 4,
                     *         "spent": 1840,
                     *         "held": 2100
                     *       },
                     *       "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *       "session_name": "chat of user 42"
                     *     }
                     */
                    "application/json": components["schemas"]["Grant"];
                };
            };
        };
    };
    revokeGrant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeGrant: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cost_limit": 10000000,
                 *       "max_uses": 500
                 *     }
                 */
                "application/json": components["schemas"]["GrantChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *       "kind": "llm",
                     *       "provider": "openai",
                     *       "method": "POST",
                     *       "paths": [
                     *         "/v1/chat/completions"
                     *       ],
                     *       "models": null,
                     *       "server": null,
                     *       "bundle_id": null,
                     *       "external_session": null,
                     *       "external_user": "user-42",
                     *       "virtual_key": null,
                     *       "api_key": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *       "metadata": {
                     *         "team": "support"
                     *       },
                     *       "issued_at": 1767225000,
                     *       "expires_at": 1767225600,
                     *       "status": "active",
                     *       "cost_limit": 250000,
                     *       "max_uses": 500,
                     *       "calls_per_minute": null,
                     *       "calls_per_day": null,
                     *       "concurrent_calls": null,
                     *       "tokens_per_minute": null,
                     *       "conditions": null,
                     *       "shared_budgets": [
                     *         "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b"
                     *       ],
                     *       "revision": 2,
                     *       "settled": {
                     *         "used": 3,
                     *         "spent": 1840
                     *       },
                     *       "live": {
                     *         "used": 4,
                     *         "spent": 1840,
                     *         "held": 2100
                     *       },
                     *       "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *       "session_name": "chat of user 42",
                     *       "url": null
                     *     }
                     */
                    "application/json": components["schemas"]["ChangedGrant"];
                };
            };
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
        };
    };
    getUsage: {
        parameters: {
            query?: {
                /** @description Calls settled at this time or later. Left out: 30 days before `to`. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B), or a day, such as 2026-01-31, for its beginning in `timezone`. */
                from?: number | (string | Date) | string;
                /** @description Calls settled before this time. Left out: now. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B), or a day, such as 2026-01-31, for its beginning in `timezone`. */
                to?: number | (string | Date) | string;
                /** @description The time zone of `day` and `month`, and of a `from` and `to` that are days, by its IANA name. */
                timezone?: string;
                /** @description The dimensions to sum by, separated by commas: external_user, session_id, model, provider, virtual_key, api_key, server, tool, outcome, day, month, and `metadata.<key>` for a key of `USAGE_METADATA`. Left out: one total. */
                group_by?: components["schemas"]["UsageDimension"][];
                /** @description Only calls of this external_user. */
                external_user?: string;
                /** @description Only calls of this session. */
                session_id?: string;
                /** @description Only calls of this provider; `mcp` for MCP servers. */
                provider?: string;
                /** @description Only calls of this model. */
                model?: string;
                /** @description Only calls with this virtual key, by its id. */
                virtual_key?: string;
                /** @description Only calls of this MCP server, by its name in the bundle. */
                server?: string;
                /** @description Only calls of this MCP tool or method. */
                tool?: string;
                /** @description Only calls of URLs with these values in their `metadata`, as `metadata[team]=red` or `metadata.team=red`. The operator declares the keys in `USAGE_METADATA`. */
                metadata?: {
                    [key: string]: string;
                };
                /** @description Only calls of URLs that this API key issued, by its id. */
                api_key?: string;
                /** @description Only calls that ended so, as `GET /v1/calls` has it. */
                outcome?: components["schemas"]["LedgerOutcome"];
                /** @description Only the call that answered with this `x-presign-request-id`. */
                request_id?: string;
                /** @description Takes precedence over the header `Accept`. Without either: json. */
                format?: "json" | "csv";
                /** @description The most groups to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat `group_by`, `timezone` and all filters with it. */
                cursor?: string;
                /** @description Only so many groups, those of the highest `cost`, the highest first. At the same cost more `calls` are first, then the order of a report without it. Needs `group_by`, and has no further pages. */
                top?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": 1767225600,
                     *       "to": 1769904000,
                     *       "group_by": [
                     *         "external_user",
                     *         "day"
                     *       ],
                     *       "next_cursor": null,
                     *       "groups": 1,
                     *       "data": [
                     *         {
                     *           "external_user": "user-42",
                     *           "day": "2026-01-01",
                     *           "calls": 3,
                     *           "uses": 3,
                     *           "cost": 1840,
                     *           "failed_calls": 0,
                     *           "calls_of_unknown_cost": 0,
                     *           "input_tokens": 720,
                     *           "output_tokens": 1730
                     *         }
                     *       ],
                     *       "total": {
                     *         "calls": 3,
                     *         "uses": 3,
                     *         "cost": 1840,
                     *         "failed_calls": 0,
                     *         "calls_of_unknown_cost": 0,
                     *         "input_tokens": 720,
                     *         "output_tokens": 1730
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["UsageReport"];
                    "text/csv": string;
                };
            };
        };
    };
    getUsageHours: {
        parameters: {
            query?: {
                /** @description Hours that begin at this time or later. Left out: 1 day before `to`. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B). */
                from?: number | (string | Date);
                /** @description Hours that begin before this time, at most 31 days after `from`. Left out: now. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B). */
                to?: number | (string | Date);
                /** @description The dimensions to sum by in addition to the hour, separated by commas: provider, model, server. */
                group_by?: components["schemas"]["HourDimension"][];
                /** @description Only calls of this provider; `mcp` for MCP servers. */
                provider?: string;
                /** @description Only calls of this model. */
                model?: string;
                /** @description Only calls of this MCP server. */
                server?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": 1767225600,
                     *       "to": 1767312000,
                     *       "data": [
                     *         {
                     *           "hour": 1767225600,
                     *           "calls": 3,
                     *           "failed_calls": 1,
                     *           "error_rate": 0.3333,
                     *           "outcomes": {
                     *             "passed": 2,
                     *             "provider_error": 1
                     *           },
                     *           "total_ms": {
                     *             "p50": 1630,
                     *             "p95": 2900
                     *           },
                     *           "first_byte_ms": {
                     *             "p50": 412,
                     *             "p95": 690
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["UsageHours"];
                };
            };
        };
    };
    getRefusals: {
        parameters: {
            query?: {
                /** @description How many days (UTC) to read, the present one included. */
                days?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2025-12-03",
                     *       "to": "2026-01-01",
                     *       "data": [
                     *         {
                     *           "day": "2026-01-01",
                     *           "code": "rate_limited",
                     *           "calls": 2,
                     *           "names": []
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Refusals"];
                };
            };
        };
    };
    listCalls: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
                /** @description Calls settled at this time or later. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B). */
                from?: number | (string | Date);
                /** @description Calls settled before this time. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B). */
                to?: number | (string | Date);
                /** @description Only calls of this external_user. */
                external_user?: string;
                /** @description Only calls of this session. */
                session_id?: string;
                /** @description Only calls of this grant. */
                grant_id?: string;
                /** @description Only calls of URLs that this API key issued. */
                api_key?: string;
                /** @description Only calls with this virtual key. */
                virtual_key?: string;
                /** @description Only calls of this provider; `mcp` for MCP servers. */
                provider?: string;
                /** @description Only calls of this model. */
                model?: string;
                /** @description Only calls of this MCP server, by its name in the bundle. */
                server?: string;
                /** @description Only calls of this MCP tool or method. */
                tool?: string;
                /** @description Only calls of URLs with these values in their `metadata`, as `metadata[team]=red` or `metadata.team=red`. The operator declares the keys in `USAGE_METADATA`. */
                metadata?: {
                    [key: string]: string;
                };
                /** @description Only calls that ended so. `failed`: calls that the gateway admitted and that failed, whatever the cause. `refused`: calls that the gateway refused. `all`: these and all others in one list. Left out: all but refused ones. */
                outcome?: components["schemas"]["OutcomeFilter"];
                /** @description Only calls that failed so: an error code, or one of the others of the field `failure`. */
                failure?: string;
                /** @description `csv` and `ndjson` export all entries in one answer, without `limit` and `cursor`. Takes precedence over the header `Accept`. Without either: json. */
                format?: "json" | "csv" | "ndjson";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "request_id": "0d9c8b7a-6f5e-4d3c-8b2a-190807060504",
                     *           "started_at": 1767225060,
                     *           "settled_at": 1767225062,
                     *           "outcome": "passed",
                     *           "failure": null,
                     *           "status": 200,
                     *           "first_byte_ms": 412,
                     *           "own_ms": 0.9,
                     *           "total_ms": 1630,
                     *           "retry_count": 0,
                     *           "user_agent": "OpenAI/Python 2.8.0",
                     *           "connection": null,
                     *           "turn": null,
                     *           "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *           "grant_id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *           "api_key": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *           "virtual_key": null,
                     *           "external_user": "user-42",
                     *           "metadata": {
                     *             "team": "red"
                     *           },
                     *           "provider": "openai",
                     *           "model": "gpt-4.1-mini",
                     *           "server": null,
                     *           "tool": null,
                     *           "uses": 1,
                     *           "input_tokens": 250,
                     *           "output_tokens": 500,
                     *           "hold": 2100,
                     *           "cost": 900,
                     *           "overrun": 0,
                     *           "price_list": {
                     *             "source": "bundled",
                     *             "id": "3d1f0c2b4a59"
                     *           },
                     *           "knowledge": "bundled:2026-11-20",
                     *           "refusal": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["CallPage"];
                    "text/csv": string;
                    "application/x-ndjson": string;
                };
            };
        };
    };
    getCall: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "request_id": "0d9c8b7a-6f5e-4d3c-8b2a-190807060504",
                     *       "started_at": 1767225060,
                     *       "settled_at": 1767225062,
                     *       "outcome": "passed",
                     *       "failure": null,
                     *       "status": 200,
                     *       "first_byte_ms": 412,
                     *       "own_ms": 0.9,
                     *       "total_ms": 1630,
                     *       "retry_count": 0,
                     *       "user_agent": "OpenAI/Python 2.8.0",
                     *       "connection": null,
                     *       "turn": null,
                     *       "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *       "grant_id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *       "api_key": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *       "virtual_key": null,
                     *       "external_user": "user-42",
                     *       "metadata": {
                     *         "team": "red"
                     *       },
                     *       "provider": "openai",
                     *       "model": "gpt-4.1-mini",
                     *       "server": null,
                     *       "tool": null,
                     *       "uses": 1,
                     *       "input_tokens": 250,
                     *       "output_tokens": 500,
                     *       "hold": 2100,
                     *       "cost": 900,
                     *       "overrun": 0,
                     *       "price_list": {
                     *         "source": "bundled",
                     *         "id": "3d1f0c2b4a59"
                     *       },
                     *       "knowledge": "bundled:2026-11-20",
                     *       "refusal": null,
                     *       "price_lines": [
                     *         {
                     *           "unit": "input_tokens",
                     *           "count": 250,
                     *           "rate": 400000
                     *         },
                     *         {
                     *           "unit": "output_tokens",
                     *           "count": 500,
                     *           "rate": 1600000
                     *         }
                     *       ],
                     *       "refunds": []
                     *     }
                     */
                    "application/json": components["schemas"]["CallWithRefunds"];
                };
            };
        };
    };
    listSimilarCalls: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "request_id": "b8a79685-7463-4251-9a0f-1e2d3c4b5a69",
                     *           "started_at": 1767225060,
                     *           "settled_at": 1767225062,
                     *           "outcome": "passed",
                     *           "failure": null,
                     *           "status": 200,
                     *           "first_byte_ms": 412,
                     *           "own_ms": 0.9,
                     *           "total_ms": 1630,
                     *           "retry_count": 1,
                     *           "user_agent": "OpenAI/Python 2.8.0",
                     *           "connection": null,
                     *           "turn": null,
                     *           "session_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *           "grant_id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69",
                     *           "api_key": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *           "virtual_key": null,
                     *           "external_user": "user-42",
                     *           "metadata": {
                     *             "team": "red"
                     *           },
                     *           "provider": "openai",
                     *           "model": "gpt-4.1-mini",
                     *           "server": null,
                     *           "tool": null,
                     *           "uses": 1,
                     *           "input_tokens": 250,
                     *           "output_tokens": 500,
                     *           "hold": 2100,
                     *           "cost": 900,
                     *           "overrun": 0,
                     *           "price_list": {
                     *             "source": "bundled",
                     *             "id": "3d1f0c2b4a59"
                     *           },
                     *           "knowledge": "bundled:2026-11-20",
                     *           "refusal": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["SimilarCalls"];
                };
            };
        };
    };
    search: {
        parameters: {
            query: {
                /** @description A part of the name. Upper and lower case are the same. */
                contains: string;
                /** @description Only names of this kind. */
                kind?: components["schemas"]["SearchKind"];
                /** @description The most names of each kind to return. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "kind": "external_user",
                     *           "id": "user-42",
                     *           "name": "user-42"
                     *         },
                     *         {
                     *           "kind": "session",
                     *           "id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                     *           "name": "Report of user 42"
                     *         }
                     *       ],
                     *       "complete": true
                     *     }
                     */
                    "application/json": components["schemas"]["SearchAnswer"];
                };
            };
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
                /** @description Changes at this time or later. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B). */
                from?: number | (string | Date);
                /** @description Changes before this time. Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B). */
                to?: number | (string | Date);
                /** @description Only changes by this API key, by its id, or by `cli` or `issuer`. */
                actor?: string;
                /** @description Only changes of this kind. */
                action?: components["schemas"]["AuditAction"];
                /** @description Only changes of something of this kind. */
                target_kind?: components["schemas"]["AuditTargetKind"];
                /** @description Only changes of what has this id. */
                target_id?: string;
                /** @description `csv` and `ndjson` export all entries in one answer, without `limit` and `cursor`. Takes precedence over the header `Accept`. Without either: json. */
                format?: "json" | "csv" | "ndjson";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "6f7a8b9c-0d1e-4f2a-8b3c-4d5e6f7a8b9c",
                     *           "at": 1767225120,
                     *           "actor": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *           "action": "grant.changed",
                     *           "target": {
                     *             "kind": "grant",
                     *             "id": "9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69"
                     *           },
                     *           "request_id": "0d9c8b7a-6f5e-4d3c-8b2a-190807060504",
                     *           "remote_address": "192.0.2.7",
                     *           "before": {
                     *             "max_uses": 20
                     *           },
                     *           "after": {
                     *             "max_uses": 500
                     *           }
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["AuditPage"];
                    "text/csv": string;
                    "application/x-ndjson": string;
                };
            };
        };
    };
    listModels: {
        parameters: {
            query?: {
                /** @description Only models of this provider. */
                provider?: string;
                /** @description Only this model, by any name that a list gives it. Needs `provider`. */
                model?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "lists": [
                     *         {
                     *           "source": "bundled",
                     *           "id": "3d1f0c2b4a59",
                     *           "date": "2026-11-20",
                     *           "waits": false
                     *         }
                     *       ],
                     *       "data": [
                     *         {
                     *           "provider": "openai",
                     *           "model": "gpt-4.1-mini",
                     *           "source": "bundled",
                     *           "date": "2026-11-20",
                     *           "rates": {
                     *             "input": 400000,
                     *             "output": 1600000
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Models"];
                };
            };
        };
    };
    getLimits: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "api_key": {
                     *         "id": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *         "name": "Web backend",
                     *         "scopes": [
                     *           "presign"
                     *         ],
                     *         "expires_at": null,
                     *         "requests_per_minute": 60000,
                     *         "policy": null
                     *       },
                     *       "account": {
                     *         "api_keys": null,
                     *         "sessions": null,
                     *         "urls_per_minute": null,
                     *         "cost_limit": 5000000
                     *       },
                     *       "account_name": "Acme",
                     *       "usage_metadata": [
                     *         "team"
                     *       ],
                     *       "presign": {
                     *         "expires_in": {
                     *           "minimum": 1,
                     *           "maximum": 31536000,
                     *           "default": 3600,
                     *           "required": false
                     *         },
                     *         "cost_limit": {
                     *           "minimum": 0,
                     *           "maximum": 9007199254740991,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "max_uses": {
                     *           "minimum": 1,
                     *           "maximum": 9007199254740991,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "calls_per_minute": {
                     *           "minimum": 1,
                     *           "maximum": 1000000,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "calls_per_day": {
                     *           "minimum": 1,
                     *           "maximum": 1000000000,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "concurrent_calls": {
                     *           "minimum": 1,
                     *           "maximum": 10000,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "tokens_per_minute": {
                     *           "minimum": 1,
                     *           "maximum": 1000000000,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "paths": 50,
                     *         "path_bytes": 1536,
                     *         "models": 50,
                     *         "config_bytes": 16384,
                     *         "metadata_bytes": 65536,
                     *         "external_id_chars": 255
                     *       },
                     *       "mcp_presign": {
                     *         "expires_in": {
                     *           "minimum": 60,
                     *           "maximum": 86400,
                     *           "default": 3600,
                     *           "required": false
                     *         },
                     *         "cost_limit": {
                     *           "minimum": 0,
                     *           "maximum": 9007199254740991,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "max_uses": {
                     *           "minimum": 1,
                     *           "maximum": 9007199254740991,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "calls_per_minute": {
                     *           "minimum": 1,
                     *           "maximum": 1000000,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "calls_per_day": {
                     *           "minimum": 1,
                     *           "maximum": 1000000000,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "concurrent_calls": {
                     *           "minimum": 1,
                     *           "maximum": 10000,
                     *           "default": null,
                     *           "required": false
                     *         },
                     *         "servers": 50,
                     *         "tools": 500,
                     *         "metadata_bytes": 65536,
                     *         "external_id_chars": 255
                     *       },
                     *       "requests": {
                     *         "body_bytes": 1048576,
                     *         "body_depth": 100,
                     *         "body_values": 50000,
                     *         "page_default": 20,
                     *         "page_maximum": 100,
                     *         "usage_groups": 100000,
                     *         "idempotency_key_seconds": 86400,
                     *         "webhooks": 20,
                     *         "alerts": 20
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Limits"];
                };
            };
        };
    };
    listVirtualKeys: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "vk_7Qm2Zt9Xc4Lw",
                     *           "name": "production",
                     *           "provider": "openai",
                     *           "config": {
                     *             "max_tokens": 500
                     *           },
                     *           "budget": {
                     *             "max_uses": null,
                     *             "cost_limit": 50000000,
                     *             "settled": {
                     *               "used": 3,
                     *               "spent": 1840
                     *             },
                     *             "live": {
                     *               "used": 4,
                     *               "spent": 1840,
                     *               "held": 2100
                     *             }
                     *           },
                     *           "version": 1,
                     *           "revision": 1,
                     *           "created_at": 1767225000,
                     *           "revoked_at": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["VirtualKeyPage"];
                };
            };
        };
    };
    createVirtualKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "provider": "openai",
                 *       "name": "production",
                 *       "key": "sk-your-openai-key",
                 *       "config": {
                 *         "max_tokens": 500
                 *       },
                 *       "budget": {
                 *         "cost_limit": 50000000
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["VirtualKeyRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "vk_7Qm2Zt9Xc4Lw",
                     *       "name": "production",
                     *       "provider": "openai",
                     *       "config": {
                     *         "max_tokens": 500
                     *       },
                     *       "budget": {
                     *         "max_uses": null,
                     *         "cost_limit": 50000000,
                     *         "settled": {
                     *           "used": 3,
                     *           "spent": 1840
                     *         },
                     *         "live": {
                     *           "used": 4,
                     *           "spent": 1840,
                     *           "held": 2100
                     *         }
                     *       },
                     *       "version": 1,
                     *       "revision": 1,
                     *       "created_at": 1767225000,
                     *       "revoked_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["VirtualKey"];
                };
            };
        };
    };
    getVirtualKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "vk_7Qm2Zt9Xc4Lw",
                     *       "name": "production",
                     *       "provider": "openai",
                     *       "config": {
                     *         "max_tokens": 500
                     *       },
                     *       "budget": {
                     *         "max_uses": null,
                     *         "cost_limit": 50000000,
                     *         "settled": {
                     *           "used": 3,
                     *           "spent": 1840
                     *         },
                     *         "live": {
                     *           "used": 4,
                     *           "spent": 1840,
                     *           "held": 2100
                     *         }
                     *       },
                     *       "version": 1,
                     *       "revision": 1,
                     *       "created_at": 1767225000,
                     *       "revoked_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["VirtualKey"];
                };
            };
        };
    };
    deleteVirtualKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeVirtualKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "production",
                 *       "budget": {
                 *         "cost_limit": 100000000
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["VirtualKeyChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "vk_7Qm2Zt9Xc4Lw",
                     *       "name": "production",
                     *       "provider": "openai",
                     *       "config": {
                     *         "max_tokens": 500
                     *       },
                     *       "budget": {
                     *         "max_uses": null,
                     *         "cost_limit": 50000000,
                     *         "settled": {
                     *           "used": 3,
                     *           "spent": 1840
                     *         },
                     *         "live": {
                     *           "used": 4,
                     *           "spent": 1840,
                     *           "held": 2100
                     *         }
                     *       },
                     *       "version": 1,
                     *       "revision": 2,
                     *       "created_at": 1767225000,
                     *       "revoked_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["VirtualKey"];
                };
            };
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
        };
    };
    rotateVirtualKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "key": "sk-your-next-openai-key"
                 *     }
                 */
                "application/json": components["schemas"]["RotationRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "vk_7Qm2Zt9Xc4Lw",
                     *       "name": "production",
                     *       "provider": "openai",
                     *       "config": {
                     *         "max_tokens": 500
                     *       },
                     *       "budget": {
                     *         "max_uses": null,
                     *         "cost_limit": 50000000,
                     *         "settled": {
                     *           "used": 3,
                     *           "spent": 1840
                     *         },
                     *         "live": {
                     *           "used": 4,
                     *           "spent": 1840,
                     *           "held": 2100
                     *         }
                     *       },
                     *       "version": 2,
                     *       "revision": 1,
                     *       "created_at": 1767225000,
                     *       "revoked_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["VirtualKey"];
                };
            };
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
        };
    };
    listApiKeys: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *           "name": "backend",
                     *           "scopes": [
                     *             "presign"
                     *           ],
                     *           "hint": "presign_sk_…x7Qa",
                     *           "created_at": 1767225000,
                     *           "expires_at": 1775001000,
                     *           "revoked_at": null,
                     *           "requests_per_minute": null,
                     *           "policy": {
                     *             "providers": [
                     *               "openai"
                     *             ],
                     *             "models": [
                     *               "gpt-4.1-mini"
                     *             ],
                     *             "highest": {
                     *               "cost_limit": 250000,
                     *               "expires_in": 900
                     *             }
                     *           },
                     *           "revision": 1,
                     *           "last_used_at": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKeyPage"];
                };
            };
        };
    };
    createApiKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "backend",
                 *       "scopes": [
                 *         "presign"
                 *       ],
                 *       "expires_in": 7776000,
                 *       "policy": {
                 *         "providers": [
                 *           "openai"
                 *         ],
                 *         "models": [
                 *           "gpt-4.1-mini"
                 *         ],
                 *         "highest": {
                 *           "cost_limit": 250000,
                 *           "expires_in": 900
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["ApiKeyRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *       "name": "backend",
                     *       "scopes": [
                     *         "presign"
                     *       ],
                     *       "hint": "presign_sk_…x7Qa",
                     *       "created_at": 1767225000,
                     *       "expires_at": 1775001000,
                     *       "revoked_at": null,
                     *       "requests_per_minute": null,
                     *       "policy": {
                     *         "providers": [
                     *           "openai"
                     *         ],
                     *         "models": [
                     *           "gpt-4.1-mini"
                     *         ],
                     *         "highest": {
                     *           "cost_limit": 250000,
                     *           "expires_in": 900
                     *         }
                     *       },
                     *       "revision": 1,
                     *       "last_used_at": null,
                     *       "key": "presign_sk_0123456789012345678901234567890123456789ABCDEFx7Q"
                     *     }
                     */
                    "application/json": components["schemas"]["NewApiKey"];
                };
            };
        };
    };
    getApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *       "name": "backend",
                     *       "scopes": [
                     *         "presign"
                     *       ],
                     *       "hint": "presign_sk_…x7Qa",
                     *       "created_at": 1767225000,
                     *       "expires_at": 1775001000,
                     *       "revoked_at": null,
                     *       "requests_per_minute": null,
                     *       "policy": {
                     *         "providers": [
                     *           "openai"
                     *         ],
                     *         "models": [
                     *           "gpt-4.1-mini"
                     *         ],
                     *         "highest": {
                     *           "cost_limit": 250000,
                     *           "expires_in": 900
                     *         }
                     *       },
                     *       "revision": 1,
                     *       "last_used_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
        };
    };
    revokeApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeApiKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "backend",
                 *       "requests_per_minute": 600
                 *     }
                 */
                "application/json": components["schemas"]["ApiKeyChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *       "name": "backend",
                     *       "scopes": [
                     *         "presign"
                     *       ],
                     *       "hint": "presign_sk_…x7Qa",
                     *       "created_at": 1767225000,
                     *       "expires_at": 1775001000,
                     *       "revoked_at": null,
                     *       "requests_per_minute": 600,
                     *       "policy": {
                     *         "providers": [
                     *           "openai"
                     *         ],
                     *         "models": [
                     *           "gpt-4.1-mini"
                     *         ],
                     *         "highest": {
                     *           "cost_limit": 250000,
                     *           "expires_in": 900
                     *         }
                     *       },
                     *       "revision": 2,
                     *       "last_used_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
        };
    };
    listAccounts: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
                /** @description `usage`: each account also has the answer of `GET /v1/accounts/{id}/usage`. Left out: the list takes less time. */
                include?: "usage";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "1c9d4e5f-6a7b-4c8d-9e0f-1a2b3c4d5e6f",
                     *           "name": "customer-a",
                     *           "created_at": 1767225000,
                     *           "suspended_at": null,
                     *           "deleted_at": null,
                     *           "limits": {
                     *             "api_keys": null,
                     *             "sessions": null,
                     *             "urls_per_minute": null,
                     *             "cost_limit": 5000000
                     *           },
                     *           "revision": 1,
                     *           "usage": {
                     *             "this_month": {
                     *               "from": 1764547200,
                     *               "to": 1767225000,
                     *               "calls": 1204,
                     *               "cost": 41250000
                     *             },
                     *             "last_month": {
                     *               "from": 1761955200,
                     *               "to": 1764547200,
                     *               "calls": 1102,
                     *               "cost": 38900000
                     *             },
                     *             "last_call_at": 1767224996,
                     *             "live_api_keys": 3,
                     *             "live_urls": 212
                     *           }
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["AccountPage"];
                };
            };
        };
    };
    createAccount: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "customer-a",
                 *       "limits": {
                 *         "cost_limit": 5000000
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["AccountRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "1c9d4e5f-6a7b-4c8d-9e0f-1a2b3c4d5e6f",
                     *       "name": "customer-a",
                     *       "created_at": 1767225000,
                     *       "suspended_at": null,
                     *       "deleted_at": null,
                     *       "limits": {
                     *         "api_keys": null,
                     *         "sessions": null,
                     *         "urls_per_minute": null,
                     *         "cost_limit": 5000000
                     *       },
                     *       "revision": 1,
                     *       "api_key": {
                     *         "id": "5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e",
                     *         "name": "customer-a",
                     *         "scopes": [
                     *           "admin"
                     *         ],
                     *         "hint": "presign_sk_…x7Qa",
                     *         "created_at": 1767225000,
                     *         "expires_at": 1775001000,
                     *         "revoked_at": null,
                     *         "requests_per_minute": null,
                     *         "policy": null,
                     *         "revision": 1,
                     *         "last_used_at": null,
                     *         "key": "presign_sk_0123456789012345678901234567890123456789ABCDEFx7Q"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["NewAccount"];
                };
            };
        };
    };
    getAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "1c9d4e5f-6a7b-4c8d-9e0f-1a2b3c4d5e6f",
                     *       "name": "customer-a",
                     *       "created_at": 1767225000,
                     *       "suspended_at": null,
                     *       "deleted_at": null,
                     *       "limits": {
                     *         "api_keys": null,
                     *         "sessions": null,
                     *         "urls_per_minute": null,
                     *         "cost_limit": 5000000
                     *       },
                     *       "revision": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Account"];
                };
            };
        };
    };
    deleteAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeAccount: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "limits": {
                 *         "urls_per_minute": 600
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["AccountChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "1c9d4e5f-6a7b-4c8d-9e0f-1a2b3c4d5e6f",
                     *       "name": "customer-a",
                     *       "created_at": 1767225000,
                     *       "suspended_at": null,
                     *       "deleted_at": null,
                     *       "limits": {
                     *         "api_keys": null,
                     *         "sessions": null,
                     *         "urls_per_minute": 600,
                     *         "cost_limit": 5000000
                     *       },
                     *       "revision": 2
                     *     }
                     */
                    "application/json": components["schemas"]["Account"];
                };
            };
        };
    };
    getAccountUsage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "this_month": {
                     *         "from": 1764547200,
                     *         "to": 1767225000,
                     *         "calls": 1204,
                     *         "cost": 41250000
                     *       },
                     *       "last_month": {
                     *         "from": 1761955200,
                     *         "to": 1764547200,
                     *         "calls": 1102,
                     *         "cost": 38900000
                     *       },
                     *       "last_call_at": 1767224996,
                     *       "live_api_keys": 3,
                     *       "live_urls": 212
                     *     }
                     */
                    "application/json": components["schemas"]["AccountUsage"];
                };
            };
        };
    };
    suspendAccount: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    resumeAccount: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listBudgets: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
                /** @description Only the budgets that this template made. */
                template?: string;
                /** @description Only the budgets of this user. */
                external_user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b",
                     *           "kind": "budget",
                     *           "name": null,
                     *           "scope": {
                     *             "external_user": "user-42"
                     *           },
                     *           "template": "d4c3b2a1-0f9e-4d8c-8b7a-6f5e4d3c2b1a",
                     *           "max_uses": null,
                     *           "cost_limit": 5000000,
                     *           "tokens": null,
                     *           "thresholds": [
                     *             50,
                     *             80,
                     *             100
                     *           ],
                     *           "visible": true,
                     *           "window": "month",
                     *           "time_zone": "UTC",
                     *           "anchor": null,
                     *           "revision": 1,
                     *           "current": {
                     *             "starts_at": 1767225600,
                     *             "ends_at": 1769904000,
                     *             "settled": {
                     *               "used": 3,
                     *               "spent": 1840,
                     *               "tokens": 2450
                     *             },
                     *             "live": {
                     *               "used": 4,
                     *               "spent": 1840,
                     *               "held": 2100,
                     *               "tokens": 2450,
                     *               "tokens_held": 1300
                     *             }
                     *           },
                     *           "created_at": 1767225000,
                     *           "deleted_at": null
                     *         },
                     *         {
                     *           "id": "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b",
                     *           "kind": "template",
                     *           "name": null,
                     *           "scope": {
                     *             "external_user": "*"
                     *           },
                     *           "template": null,
                     *           "max_uses": null,
                     *           "cost_limit": 5000000,
                     *           "tokens": null,
                     *           "thresholds": [
                     *             50,
                     *             80,
                     *             100
                     *           ],
                     *           "visible": true,
                     *           "window": "month",
                     *           "time_zone": "UTC",
                     *           "anchor": null,
                     *           "revision": 1,
                     *           "current": null,
                     *           "created_at": 1767225000,
                     *           "deleted_at": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["SharedBudgetPage"];
                };
            };
        };
    };
    createBudget: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "scope": {
                 *         "external_user": "*"
                 *       },
                 *       "cost_limit": 5000000,
                 *       "window": "month"
                 *     }
                 */
                "application/json": components["schemas"]["BudgetRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b",
                     *       "kind": "template",
                     *       "name": null,
                     *       "scope": {
                     *         "external_user": "*"
                     *       },
                     *       "template": null,
                     *       "max_uses": null,
                     *       "cost_limit": 5000000,
                     *       "tokens": null,
                     *       "thresholds": [
                     *         50,
                     *         80,
                     *         100
                     *       ],
                     *       "visible": true,
                     *       "window": "month",
                     *       "time_zone": "UTC",
                     *       "anchor": null,
                     *       "revision": 1,
                     *       "current": null,
                     *       "created_at": 1767225000,
                     *       "deleted_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["SharedBudget"];
                };
            };
        };
    };
    getBudget: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b",
                     *       "kind": "budget",
                     *       "name": null,
                     *       "scope": {
                     *         "external_user": "user-42"
                     *       },
                     *       "template": "d4c3b2a1-0f9e-4d8c-8b7a-6f5e4d3c2b1a",
                     *       "max_uses": null,
                     *       "cost_limit": 5000000,
                     *       "tokens": null,
                     *       "thresholds": [
                     *         50,
                     *         80,
                     *         100
                     *       ],
                     *       "visible": true,
                     *       "window": "month",
                     *       "time_zone": "UTC",
                     *       "anchor": null,
                     *       "revision": 1,
                     *       "current": {
                     *         "starts_at": 1767225600,
                     *         "ends_at": 1769904000,
                     *         "settled": {
                     *           "used": 3,
                     *           "spent": 1840,
                     *           "tokens": 2450
                     *         },
                     *         "live": {
                     *           "used": 4,
                     *           "spent": 1840,
                     *           "held": 2100,
                     *           "tokens": 2450,
                     *           "tokens_held": 1300
                     *         }
                     *       },
                     *       "created_at": 1767225000,
                     *       "deleted_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["SharedBudget"];
                };
            };
        };
    };
    deleteBudget: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeBudget: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cost_limit": 10000000
                 *     }
                 */
                "application/json": components["schemas"]["BudgetChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b",
                     *       "kind": "budget",
                     *       "name": null,
                     *       "scope": {
                     *         "external_user": "user-42"
                     *       },
                     *       "template": "d4c3b2a1-0f9e-4d8c-8b7a-6f5e4d3c2b1a",
                     *       "max_uses": null,
                     *       "cost_limit": 10000000,
                     *       "tokens": null,
                     *       "thresholds": [
                     *         50,
                     *         80,
                     *         100
                     *       ],
                     *       "visible": true,
                     *       "window": "month",
                     *       "time_zone": "UTC",
                     *       "anchor": null,
                     *       "revision": 2,
                     *       "current": {
                     *         "starts_at": 1767225600,
                     *         "ends_at": 1769904000,
                     *         "settled": {
                     *           "used": 3,
                     *           "spent": 1840,
                     *           "tokens": 2450
                     *         },
                     *         "live": {
                     *           "used": 4,
                     *           "spent": 1840,
                     *           "held": 2100,
                     *           "tokens": 2450,
                     *           "tokens_held": 1300
                     *         }
                     *       },
                     *       "created_at": 1767225000,
                     *       "deleted_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["SharedBudget"];
                };
            };
            /** @description The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "pending"
                     *     }
                     */
                    "application/json": components["schemas"]["Pending"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *           "format": "standard",
                     *           "url": "https://example.com/webhooks",
                     *           "events": [
                     *             "session.exhausted",
                     *             "usage.settled"
                     *           ],
                     *           "description": null,
                     *           "created_at": 1767225000,
                     *           "previous_secret_expires_at": null,
                     *           "status": "enabled",
                     *           "disabled_reason": null,
                     *           "disabled_at": null,
                     *           "failing_since": null,
                     *           "revision": 1
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookPage"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://example.com/webhooks",
                 *       "events": [
                 *         "session.exhausted",
                 *         "usage.settled"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["WebhookRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "format": "standard",
                     *       "url": "https://example.com/webhooks",
                     *       "events": [
                     *         "session.exhausted",
                     *         "usage.settled"
                     *       ],
                     *       "description": null,
                     *       "created_at": 1767225000,
                     *       "previous_secret_expires_at": null,
                     *       "status": "enabled",
                     *       "disabled_reason": null,
                     *       "disabled_at": null,
                     *       "failing_since": null,
                     *       "revision": 1,
                     *       "secret": "whsec_bm90IGEgc2VjcmV0OiBhbiBleGFtcGxlIG9mIG9uZQ=="
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "format": "standard",
                     *       "url": "https://example.com/webhooks",
                     *       "events": [
                     *         "session.exhausted",
                     *         "usage.settled"
                     *       ],
                     *       "description": null,
                     *       "created_at": 1767225000,
                     *       "previous_secret_expires_at": null,
                     *       "status": "enabled",
                     *       "disabled_reason": null,
                     *       "disabled_at": null,
                     *       "failing_since": null,
                     *       "revision": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "events": [
                 *         "grant.revoked",
                 *         "audit.entry"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["WebhookChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "format": "standard",
                     *       "url": "https://example.com/webhooks",
                     *       "events": [
                     *         "grant.revoked",
                     *         "audit.entry"
                     *       ],
                     *       "description": null,
                     *       "created_at": 1767225000,
                     *       "previous_secret_expires_at": null,
                     *       "status": "enabled",
                     *       "disabled_reason": null,
                     *       "disabled_at": null,
                     *       "failing_since": null,
                     *       "revision": 2
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "format": "standard",
                     *       "url": "https://example.com/webhooks",
                     *       "events": [
                     *         "session.exhausted",
                     *         "usage.settled"
                     *       ],
                     *       "description": null,
                     *       "created_at": 1767225000,
                     *       "previous_secret_expires_at": 1767311400,
                     *       "status": "enabled",
                     *       "disabled_reason": null,
                     *       "disabled_at": null,
                     *       "failing_since": null,
                     *       "revision": 1,
                     *       "secret": "whsec_bm90IGEgc2VjcmV0OiBhbiBleGFtcGxlIG9mIG9uZQ=="
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    enableWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "format": "standard",
                     *       "url": "https://example.com/webhooks",
                     *       "events": [
                     *         "session.exhausted",
                     *         "usage.settled"
                     *       ],
                     *       "description": null,
                     *       "created_at": 1767225000,
                     *       "previous_secret_expires_at": null,
                     *       "status": "enabled",
                     *       "disabled_reason": null,
                     *       "disabled_at": null,
                     *       "failing_since": null,
                     *       "revision": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "8c7b6a59-4d3e-4f2a-9b1c-0d9e8f7a6b5c",
                     *       "event_id": "4e5f6a7b-8c9d-4e0f-8a1b-2c3d4e5f6a7b",
                     *       "type": "webhook.test",
                     *       "status": "pending",
                     *       "attempts": 0,
                     *       "last_status": null,
                     *       "last_error": null,
                     *       "next_try_at": 1767225060,
                     *       "created_at": 1767225060,
                     *       "delivered_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
                /** @description Left out: all. */
                status?: components["schemas"]["DeliveryStatus"];
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "8c7b6a59-4d3e-4f2a-9b1c-0d9e8f7a6b5c",
                     *           "event_id": "4e5f6a7b-8c9d-4e0f-8a1b-2c3d4e5f6a7b",
                     *           "type": "webhook.test",
                     *           "status": "pending",
                     *           "attempts": 0,
                     *           "last_status": null,
                     *           "last_error": null,
                     *           "next_try_at": 1767225060,
                     *           "created_at": 1767225060,
                     *           "delivered_at": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["DeliveryPage"];
                };
            };
        };
    };
    replayDelivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "8c7b6a59-4d3e-4f2a-9b1c-0d9e8f7a6b5c",
                     *       "event_id": "4e5f6a7b-8c9d-4e0f-8a1b-2c3d4e5f6a7b",
                     *       "type": "usage.settled",
                     *       "status": "pending",
                     *       "attempts": 0,
                     *       "last_status": null,
                     *       "last_error": null,
                     *       "next_try_at": 1767225060,
                     *       "created_at": 1767225060,
                     *       "delivered_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    listAlerts: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "2f1e0d9c-8b7a-4695-8473-625140f3e2d1",
                     *           "name": "Daily spend",
                     *           "condition": {
                     *             "spend": {
                     *               "window": "day",
                     *               "time_zone": "UTC",
                     *               "amount": 50000000
                     *             }
                     *           },
                     *           "webhook": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *           "enabled": true,
                     *           "firing_since": 1767225060,
                     *           "value": 61204000,
                     *           "threshold": 50000000,
                     *           "checked_at": 1767225090,
                     *           "revision": 1,
                     *           "created_at": 1767225000
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["AlertPage"];
                };
            };
        };
    };
    createAlert: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Daily spend",
                 *       "condition": {
                 *         "spend": {
                 *           "window": "day",
                 *           "amount": 50000000
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["AlertRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2f1e0d9c-8b7a-4695-8473-625140f3e2d1",
                     *       "name": "Daily spend",
                     *       "condition": {
                     *         "spend": {
                     *           "window": "day",
                     *           "time_zone": "UTC",
                     *           "amount": 50000000
                     *         }
                     *       },
                     *       "webhook": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "enabled": true,
                     *       "firing_since": null,
                     *       "value": null,
                     *       "threshold": null,
                     *       "checked_at": null,
                     *       "revision": 1,
                     *       "created_at": 1767225000
                     *     }
                     */
                    "application/json": components["schemas"]["Alert"];
                };
            };
        };
    };
    getAlert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2f1e0d9c-8b7a-4695-8473-625140f3e2d1",
                     *       "name": "Daily spend",
                     *       "condition": {
                     *         "spend": {
                     *           "window": "day",
                     *           "time_zone": "UTC",
                     *           "amount": 50000000
                     *         }
                     *       },
                     *       "webhook": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "enabled": true,
                     *       "firing_since": 1767225060,
                     *       "value": 61204000,
                     *       "threshold": 50000000,
                     *       "checked_at": 1767225090,
                     *       "revision": 1,
                     *       "created_at": 1767225000
                     *     }
                     */
                    "application/json": components["schemas"]["Alert"];
                };
            };
        };
    };
    deleteAlert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. The answer has no body. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeAlert: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier answer: another change since then makes this one fail. */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "enabled": false
                 *     }
                 */
                "application/json": components["schemas"]["AlertChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "2f1e0d9c-8b7a-4695-8473-625140f3e2d1",
                     *       "name": "Daily spend",
                     *       "condition": {
                     *         "spend": {
                     *           "window": "day",
                     *           "time_zone": "UTC",
                     *           "amount": 50000000
                     *         }
                     *       },
                     *       "webhook": "2a4b6c8d-0e1f-4a3b-8c5d-6e7f8a9b0c1d",
                     *       "enabled": false,
                     *       "firing_since": null,
                     *       "value": 61204000,
                     *       "threshold": 50000000,
                     *       "checked_at": 1767225090,
                     *       "revision": 2,
                     *       "created_at": 1767225000
                     *     }
                     */
                    "application/json": components["schemas"]["Alert"];
                };
            };
        };
    };
    testAlert: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused. */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "8c7b6a59-4d3e-4f2a-9b1c-0d9e8f7a6b5c",
                     *       "event_id": "4e5f6a7b-8c9d-4e0f-8a1b-2c3d4e5f6a7b",
                     *       "type": "alert.fired",
                     *       "status": "pending",
                     *       "attempts": 0,
                     *       "last_status": null,
                     *       "last_error": null,
                     *       "next_try_at": 1767225060,
                     *       "created_at": 1767225060,
                     *       "delivered_at": null
                     *     }
                     */
                    "application/json": components["schemas"]["Delivery"];
                };
            };
        };
    };
    listFirings: {
        parameters: {
            query?: {
                /** @description The most entries to return. */
                limit?: number;
                /** @description The next_cursor of the page before. Repeat all filters with it. */
                cursor?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": "3a2b1c0d-9e8f-4a7b-8c6d-5e4f3a2b1c0d",
                     *           "fired_at": 1767225060,
                     *           "resolved_at": null,
                     *           "value": 50012000,
                     *           "threshold": 50000000,
                     *           "starts_at": 1767225600,
                     *           "ends_at": 1767312000,
                     *           "delivery": {
                     *             "status": "delivered",
                     *             "attempts": 1,
                     *             "last_status": 204,
                     *             "last_error": null
                     *           }
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["AlertFiringPage"];
                };
            };
        };
    };
    publicKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "kid": "k4.pid.AbCdEf…",
                     *           "public_key": "k4.public.GhIjKl…"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PublicKeys"];
                };
            };
        };
    };
}
