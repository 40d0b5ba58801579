# frozen_string_literal: true

# Puma's settings. `rperf ps` shows the tag.

port ENV.fetch("PORT", 9292)
threads 2, 4
tag "shop"
