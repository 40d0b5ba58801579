# frozen_string_literal: true

require_relative "api/start"
require_relative "api/labels"
require_relative "api/op"
require_relative "api/sections"
require_relative "api/pause"
require_relative "api/snapshot"
require_relative "api/listen"
require_relative "api/push"
require_relative "api/trace"
require_relative "api/profile"
require_relative "api/files"

# A sampling profiler for CRuby. See {Rperf.start}.
module Rperf
  private_constant :Native, :NativeProfile, :NativePush, :NativePushSender, :NativeSettings
end
