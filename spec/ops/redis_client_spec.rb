# frozen_string_literal: true

# Commands of redis-client are ops, by their names.
RSpec.describe "Ops of redis-client", vm: true, skip: Servers.missing("redis-client") do
  include OpPrograms

  # A server that speaks as much of Redis' protocol as the client needs.
  server = <<~'RUBY'
    require "redis-client"
    require "socket"

    LISTENER = TCPServer.new("127.0.0.1", 0)
    SEEN = Queue.new
    HUNG = Queue.new

    def answer(client, word, queued)
      case word
      when "HANG" then HUNG.push(true) && sleep
      when "DROP" then client.close
      when "FAIL" then "-ERR no\r\n"
      when "SLOW" then sleep(0.05) && "+OK\r\n"
      when "EXEC" then "*#{queued}\r\n#{"+OK\r\n" * queued}"
      else queued ? "+QUEUED\r\n" : "+OK\r\n"
      end
    end

    def serve(client)
      queued = nil
      while (line = client.gets)
        words = Array.new(line[1..].to_i) { client.read(client.gets[1..].to_i + 2).chomp }
        SEEN << words
        word = words.first.upcase
        client.write(answer(client, word, queued))
        queued = { "MULTI" => 0, "EXEC" => nil }.fetch(word) { queued&.succ }
      end
    rescue SystemCallError, IOError
      nil
    end

    Thread.new { loop { Thread.new(LISTENER.accept) { |client| serve(client) } } }
    CONFIG = RedisClient.config(host: "127.0.0.1", port: LISTENER.local_address.ip_port, protocol: 2, timeout: 5,
                                reconnect_attempts: 0)
    REDIS = CONFIG.new_client
  RUBY

  define_method(:told_of) { |program, *options, **run| ops_of(program, *options, head: server, **run) }

  it "have the commands' names, those of clients from before the session, too" do
    values = told_of(<<~'RUBY')
      REDIS.call("PING")
      values = nil
      measured do
        values = [REDIS.call("GET", "key"), REDIS.call("get", "key") { |it| "#{it}!" }, REDIS.call_v(["HGET", "a", "b"])]
        values << REDIS.call_once("SET", "key", "value", ex: 5) << REDIS.blocking_call(1, "BLPOP", "key", 1)
        values << REDIS.pipelined { |it| 3.times { |number| it.call("SET", number, 1) } }
        values << REDIS.multi { |it| it.call("INCR", "n") }
        values << CONFIG.new_client.call("JSON.GET", "key")
        values << RedisClient.config(host: "127.0.0.1", port: CONFIG.port, protocol: 2, middlewares: [Module.new])
                             .new_client.call("LPUSH", "a", 1)
      end
      puts values.to_json
    RUBY
    expect(values).to eq(["OK", "OK!", "OK", "OK", "OK", %w[OK OK OK], ["OK"], "OK", "OK"])
    expect(op_calls).to eq("[Redis] GET" => 2, "[Redis] HGET" => 1, "[Redis] SET" => 1, "[Redis] BLPOP" => 1,
                           "[Redis] PIPELINE" => 2, "[Redis] JSON.GET" => 1, "[Redis] LPUSH" => 1,
                           "[Redis] CONNECT" => 2)
  end

  it "are the leaf of samples while the program waits" do
    blocked, sampled = told_of(<<~'RUBY')
      profile = measured(frequency: 1000) { 4.times { REDIS.call("SLOW", "key") } }
      slow = profile.ops[:ops].find { |it| it[:name] == "[Redis] SLOW" }
      puts [slow[:blocked_ns], profile.top(sort: :total, limit: nil).find { |it| it[:name] == "[Redis] SLOW" }[:total]].to_json
    RUBY
    expect(blocked).to be_between(199_000_000, 4_000_000_000)
    expect(sampled).to be_within(0.3 * blocked).of(blocked)
  end

  it "have no key, value or password in any byte of the profile" do
    told_of(<<~'RUBY')
      client = RedisClient.config(host: "127.0.0.1", port: CONFIG.port, protocol: 2, password: "s3cr3t-password",
                                  username: "s3cr3t-user").new_client
      measured do
        client.call("SET", "s3cr3t-key", "s3cr3t-value")
        client.pipelined { |it| it.call("GET", "s3cr3t-key") }
        begin
          client.call("FAIL", "s3cr3t-key")
        rescue RedisClient::Error
          nil
        end
      end
    RUBY
    expect(op_calls.keys).to include("[Redis] SET", "[Redis] PIPELINE", "[Redis] FAIL")
    expect(bytes_of).not_to include("s3cr3t")
  end

  it "change nothing of what the program gets, raises and sends" do
    alone, inside, after = told_of(<<~'RUBY')
      cases = {
        value: -> { REDIS.call("GET", "key") },
        failed: -> { REDIS.call("FAIL") },
        argument: -> { REDIS.call("GET", Object.new) },
        none: -> { REDIS.call },
        pipelined: -> { REDIS.pipelined { |it| it.call("SET", 1, 1); it.call("FAIL") } },
        multi: -> { REDIS.multi { |it| it.call("SET", 1, 1); raise "mine" } },
        # As Timeout does it, and a server's that is about to end.
        interrupted: lambda do
          waits = Thread.current
          Thread.new { HUNG.pop && waits.raise(Interrupt, "mine") }
          begin
            CONFIG.new_client.call("HANG")
          rescue Interrupt => error
            error.message
          end
        end,
        own_time_out: lambda do
          REDIS.blocking_call(0.05, "HANG")
        ensure
          HUNG.pop
        end,
        dropped: -> { CONFIG.new_client.call("DROP") },
        refused: -> { RedisClient.new(host: "127.0.0.1", port: 1, reconnect_attempts: 0).call("PING") },
        frozen: -> { RedisClient::Middlewares.new(REDIS).freeze.call(["X"], CONFIG) { |it| it.to_s } },
        killed: -> { Thread.new { REDIS.pipelined { Thread.exit } }.join.status }
      }
      results = -> { [cases.map { |name, work| [name, outcome(&work)] }, Array.new(SEEN.size) { SEEN.pop }] }
      alone = results.call
      inside = nil
      measured do
        inside = results.call
        Rperf.op("the next") { sleep 0.02 }
      end
      puts [alone, inside, results.call].to_json
    RUBY
    expect([inside, after]).to eq([alone, alone])
    expect(op_calls["[op] the next"]).to eq(1)
    ops = Rperf.load(path_to("p.pb.gz")).ops[:ops]
    expect(ops.find { |it| it[:name] == "[op] the next" }[:blocked_ns]).to be >= 19_000_000
  end
end
