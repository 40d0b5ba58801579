# frozen_string_literal: true

# The newspaper for any Rack server: see README.md.

require_relative "news"

run News.app
