# frozen_string_literal: true

# The shop for any Rack server: see README.md.

require_relative "shop"

run Shop.app
