# frozen_string_literal: true

return if defined?(Rperf.instead_of) && Rperf.instead_of(__FILE__)

require_relative "rack"
