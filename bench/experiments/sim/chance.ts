export { Chance, Zipf } from '../../../control/scheduler/simulation/chance.ts';
