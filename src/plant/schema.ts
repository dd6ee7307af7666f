export { type Checked, checkNewPlant } from './plant.js'
