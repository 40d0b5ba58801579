# frozen_string_literal: true

require "rperf"

# Each sample has the example that ran.
RSpec.configure do |config|
  config.around { |example| Rperf.label(example: example.full_description) { example.run } }
end
