# frozen_string_literal: true

# Mixes colours.
module Shade
  VERSION = "1.0.0"
  STEPS = 20_000

  def self.blend(colour)
    step = 0
    while step < STEPS
      colour = ((colour * 31) + step) & 0xffffff
      step += 1
    end
    colour
  end
end
