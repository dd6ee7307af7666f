import fc from 'fast-check'
import { isSoak } from './rounds.js'

// A usual run tries the same values each time; a soak tries others.
if (!isSoak) fc.configureGlobal({ seed: 20 })

export { fc }
