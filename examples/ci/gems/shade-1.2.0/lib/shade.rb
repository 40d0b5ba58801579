# frozen_string_literal: true

# Mixes colours, in 8 % more steps than version 1.1.0.
module Shade
  VERSION = "1.2.0"
  STEPS = 21_600

  def self.blend(colour)
    step = 0
    while step < STEPS
      colour = ((colour * 31) + step) & 0xffffff
      step += 1
    end
    colour
  end
end
